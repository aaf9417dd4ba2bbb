package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/spf13/cobra"
	orasregistry "oras.land/oras-go/v2/registry"

	"github.com/mensylisir/kubexm/bundle"
	"github.com/mensylisir/kubexm/cmd/kubexm/console"
	"github.com/mensylisir/kubexm/installer"
	"github.com/mensylisir/kubexm/installer/report"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/refusal"
	"github.com/mensylisir/kubexm/registry"
)

// fillFlags are the flags of registry push.
type fillFlags struct {
	remoteFlags
	policyFlags
	baseFlags
	bundle        string
	to            string
	config        string // config of the registry's cluster, in place of to
	workdir       string
	username      string
	passwordStdin bool
	dryRun        bool
}

func (a *app) registryPush() *cobra.Command {
	f := &fillFlags{}
	cmd := &cobra.Command{
		Use:   "push --bundle ARCHIVE {--to HOST | -f CONFIG}",
		Short: "Push a bundle's images to a registry",
		Long: `Push a bundle's images directly from the archive to a registry, each under the name that it has at
a site: registry.k8s.io/pause:3.10 becomes HOST/PROJECT/registry.k8s.io/pause:3.10. If the registry
has projects, the project must exist. To push the bundle as one artifact see "kubexm bundle push";
for your own images see "kubexm registry login".

With --to, push to an existing registry that this machine reaches. With -f, push to the cluster's
own registry. If kubexm installed it, the push goes through the SSH connection to its host, since it
accepts no pushes from the network.

Blobs that the registry already has are not sent, so an interrupted push can be continued. Blobs of
another repository are mounted if the registry supports that. A tag is written last: it never refers
to an incomplete image.

An index may list platforms that the bundle does not contain. If the registry rejects such an index,
an index with only the bundle's platforms is pushed. It has another digest, which is printed: the
image cannot be pulled by upstream's digest then.`,
		Example: `  kubexm registry push --key cosign.pub --bundle demo.tar.zst \
    --to harbor.example/kube --dry-run
  kubexm registry push --key cosign.pub --bundle demo.tar.zst \
    --to harbor.example/kube --ca-file ca.crt
  kubexm registry push --key cosign.pub --bundle demo.tar.zst -f config.yaml
  echo "$PASSWORD" | kubexm registry push --key cosign.pub \
    --bundle demo.tar.zst --to 192.0.2.5:5000 \
    --username admin --password-stdin -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.fill(cmd.Context(), f) },
	}
	f.remoteFlags.add(cmd)
	fs := cmd.Flags()
	fs.StringVarP(&f.bundle, "bundle", "b", "", useBundle)
	fs.StringVar(&f.to, "to", "", "the registry, and the project for all images: HOST[:PORT][/PROJECT]")
	fs.StringVarP(&f.config, "filename", "f", "", also(useConfig, "push to its registry"))
	fs.StringVarP(&f.workdir, "workdir", "w", ".", also(useWorkdir, "with -f"))
	fs.StringVar(&f.username, "username", "", "user of the registry (default docker's credentials)")
	fs.BoolVar(&f.passwordStdin, "password-stdin", false, "read the user's password from standard input")
	fs.BoolVar(&f.dryRun, "dry-run", false, useDryRun)
	_ = cmd.MarkFlagRequired("bundle")
	_ = cmd.MarkFlagFilename("filename", "yaml", "yml")
	_ = cmd.MarkFlagDirname("workdir")
	cmd.MarkFlagsOneRequired("to", "filename")
	for _, own := range []string{"to", "username", "docker-config", "ca-file", "plain-http"} { // these come from the config
		cmd.MarkFlagsMutuallyExclusive("filename", own)
	}
	_ = cmd.MarkFlagFilename("bundle", "tar.zst", "001")
	cmd.MarkFlagsRequiredTogether("username", "password-stdin")
	cmd.MarkFlagsMutuallyExclusive("username", "docker-config")
	f.policyFlags.add(cmd)
	f.baseFlags.add(cmd)
	a.outputFlag(cmd, "text", "json")
	return cmd
}

// filled is the output of a push with -o json.
type filled struct {
	Registry string                 `json:"registry"`
	DryRun   bool                   `json:"dryRun"`
	Missing  int                    `json:"missing"` // images that the registry lacked
	Lacking  lack                   `json:"lacking"` // content that it lacked
	Sent     registry.FillResult    `json:"sent"`
	Images   []registry.ImageStatus `json:"images"`
}

// lack counts the content that a registry lacks.
type lack struct {
	Blobs  int   `json:"blobs"`
	Bytes  int64 `json:"bytes"`
	Mounts int   `json:"mounts"` // blobs that another repository of it has
}

func (a *app) fill(ctx context.Context, f *fillFlags) error {
	if err := f.check(); err != nil {
		return err
	}
	var c *manifest.Cluster
	if f.config != "" {
		var err error
		if c, err = a.loadCluster(f.config, ""); err != nil {
			return err
		}
		c.ResolvePaths(folderOf(f.config))
	}
	policy, err := a.policy(&f.policyFlags, c)
	if err != nil {
		return err
	}
	b, err := bundle.Open(ctx, f.bundle, policy, f.bases...)
	if err != nil {
		return report.Refused(err)
	}
	defer b.Close()
	var t registry.Target
	if c == nil {
		t, err = a.fillTarget(f)
	} else {
		var s *installer.Registry
		if s, err = installer.OpenRegistry(ctx, a.options(f.workdir, 1, c)); err == nil {
			defer s.Session.Close()
			t, f.to = s.Target, c.Spec.Registry.Namespaced()
		}
	}
	if err != nil {
		return err
	}
	return a.fillFrom(ctx, f, t, b)
}

// fillFrom pushes the images of b that t lacks, and prints the result.
func (a *app) fillFrom(ctx context.Context, f *fillFlags, t registry.Target, b *bundle.Bundle) error {
	p := a.progress(a.output != "text")
	defer p.Stop()
	p.Phase("ask")
	c, err := registry.Compare(ctx, t, b, b.Lock.Images, f.parallel)
	p.Stop()
	if err != nil {
		return report.FillRefused(err)
	}
	out := filled{Registry: f.to, DryRun: f.dryRun, Missing: c.Missing(), Lacking: lack{c.Blobs, c.Bytes, c.Mounts}, Images: c.Images}
	if !f.dryRun {
		p.Phase("push")
		p.Expect(c.Bytes)
		var sent atomic.Int64
		add := func(n int64) {
			p.Add(n)
			if all := sent.Add(n); all > c.Bytes { // a mount was not possible, or a blob is sent again
				p.Expect(all)
			}
		}
		out.Sent, out.Images, err = registry.Fill(ctx, t, b, c, registry.Options{Parallel: f.parallel, Sent: add, Narrow: true})
		p.Stop()
		if err != nil {
			return report.FillRefused(err)
		}
	}
	if a.structured() {
		return a.printValue(out)
	}
	return a.printFilled(out)
}

// fillTarget returns the registry of --to, with the credentials of the flags.
func (a *app) fillTarget(f *fillFlags) (registry.Target, error) {
	host, project, _ := strings.Cut(f.to, "/")
	where := orasregistry.Reference{Registry: host, Repository: project}
	err := where.ValidateRegistry()
	if err == nil && project != "" {
		err = where.ValidateRepository()
	}
	if err != nil || strings.Contains(f.to, "://") {
		return registry.Target{}, &refusal.Error{Err: fmt.Errorf("--to %s is not a valid registry", f.to), Kind: refusal.Usage, Advice: "write it as HOST[:PORT][/PROJECT], without https://"}
	}
	client, err := f.remote(f.to).Client()
	if err != nil {
		return registry.Target{}, err
	}
	t := registry.Target{
		Mapper: registry.Mapper{Host: host, Namespace: project}, Client: client.Client, Credential: client.Credential,
		UserAgent: "kubexm/" + ownVersion(), PlainHTTP: f.plainHTTP, Username: f.username,
	}
	if f.username != "" {
		line, err := bufio.NewReader(a.in).ReadString('\n')
		if t.Password = strings.TrimRight(line, "\r\n"); t.Password == "" {
			return registry.Target{}, &refusal.Error{Err: errors.Join(errors.New("no password on standard input"), err), Kind: refusal.Usage, Advice: "redirect it from a file: … --password-stdin < FILE"}
		}
	}
	return t, nil
}

// printFilled prints the result of a push.
func (a *app) printFilled(f filled) error {
	var text strings.Builder
	existing := len(f.Images) - f.Missing
	if f.DryRun {
		fmt.Fprintf(&text, "%s: lacks %s of %d: %s (%s) would be sent, %s mounted\n", f.Registry, console.FormatCount(f.Missing, "image"), len(f.Images),
			console.FormatCount(f.Lacking.Blobs, "blob"), bundle.Bytes(f.Lacking.Bytes), console.FormatCount(f.Lacking.Mounts, "blob"))
	} else {
		fmt.Fprintf(&text, "%s: %s sent, %s already existed\n  sent  %s (%s), and %d mounted\n", f.Registry, console.FormatCount(f.Sent.Images, "image"), console.FormatCount(existing, "image"),
			console.FormatCount(f.Sent.Blobs, "blob"), bundle.Bytes(f.Sent.Bytes), f.Sent.Mounted)
	}
	for _, at := range f.Images {
		switch {
		case at.Narrowed():
			fmt.Fprintf(&text, "  %s has another digest in the registry: %s\n", at.Target, at.Digest)
		case f.DryRun && !at.AlreadyPresent:
			fmt.Fprintf(&text, "  %s is missing\n", at.Target)
		}
		if at.Previous != "" {
			fmt.Fprintf(&text, "  %s replaced another image: %s\n", at.Target, at.Previous)
		}
	}
	_, err := fmt.Fprint(a.out, text.String())
	return err
}
