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

// fillFlags are those of registry push.
type fillFlags struct {
	remoteFlags
	policyFlags
	baseFlags
	bundle        string
	to            string
	config        string // of the cluster whose registry it is, in place of to
	workdir       string
	username      string
	passwordStdin bool
	dryRun        bool
}

func (a *app) registryPush() *cobra.Command {
	f := &fillFlags{}
	cmd := &cobra.Command{
		Use:   "push --bundle ARCHIVE {--to HOST | -f CONFIG}",
		Short: "Fill a registry with a bundle's images",
		Long: `Send a bundle's images straight from the archive to a registry, each under the name that it has
at a site: registry.k8s.io/pause:3.10 becomes HOST/PROJECT/registry.k8s.io/pause:3.10. The project
has to exist where the registry has such. For the whole bundle as one artifact see "kubexm bundle
push", for images of your own "kubexm registry login".

With --to the registry is one that exists already and that this machine reaches. With -f it is
the cluster's own: one that kubexm installed is reached through the SSH connection of its host,
since it takes no pushes from the network.

What the registry has is not sent, so a push that broke off goes on, and one that is done sends
nothing. What lies in another repository is mounted from there where the registry does that. A
tag comes last and names a whole image.

An index may name platforms that the bundle does not hold. A registry that refuses such an index
gets one with the bundle's platforms alone. Its digest is another one, and is told: what names
the image by upstream's digest does not find it there.`,
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
	fs.StringVar(&f.to, "to", "", "the registry to fill, with the project that everything goes into: HOST[:PORT][/PROJECT]")
	fs.StringVarP(&f.config, "filename", "f", "", also(useConfig, "whose registry is filled"))
	fs.StringVarP(&f.workdir, "workdir", "w", ".", also(useWorkdir, "with -f"))
	fs.StringVar(&f.username, "username", "", "user to log in as (default docker's own credentials)")
	fs.BoolVar(&f.passwordStdin, "password-stdin", false, "read that user's password from standard input")
	fs.BoolVar(&f.dryRun, "dry-run", false, useDryRun)
	_ = cmd.MarkFlagRequired("bundle")
	_ = cmd.MarkFlagFilename("filename", "yaml", "yml")
	_ = cmd.MarkFlagDirname("workdir")
	cmd.MarkFlagsOneRequired("to", "filename")
	for _, own := range []string{"to", "username", "docker-config", "ca-file", "plain-http"} { // the config says it
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

// filled is what -o json says of a push.
type filled struct {
	Registry string              `json:"registry"`
	DryRun   bool                `json:"dryRun"`
	Missing  int                 `json:"missing"` // images that were not there
	Lacking  lack                `json:"lacking"` // of these
	Sent     registry.Seeded     `json:"sent"`
	Images   []registry.Standing `json:"images"`
}

// lack counts what a registry has not.
type lack struct {
	Blobs  int   `json:"blobs"`
	Bytes  int64 `json:"bytes"`
	Mounts int   `json:"mounts"` // that another repository of it has
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
		c.PlaceFiles(folderOf(f.config))
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

// fillFrom sends what t lacks of b.
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
			if all := sent.Add(n); all > c.Bytes { // what was to be mounted is sent, or something once more
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

// fillTarget is the registry that the flags name.
func (a *app) fillTarget(f *fillFlags) (registry.Target, error) {
	host, project, _ := strings.Cut(f.to, "/")
	where := orasregistry.Reference{Registry: host, Repository: project}
	err := where.ValidateRegistry()
	if err == nil && project != "" {
		err = where.ValidateRepository()
	}
	if err != nil || strings.Contains(f.to, "://") {
		return registry.Target{}, &refusal.Error{Err: fmt.Errorf("--to %s names no registry", f.to), Kind: refusal.Usage, Advice: "write it as HOST[:PORT][/PROJECT], without https://"}
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
			return registry.Target{}, &refusal.Error{Err: errors.Join(errors.New("no password on standard input"), err), Kind: refusal.Usage, Advice: "pipe it in: … --password-stdin < FILE"}
		}
	}
	return t, nil
}

// printFilled says what came of a push to people.
func (a *app) printFilled(f filled) error {
	var text strings.Builder
	there := len(f.Images) - f.Missing
	if f.DryRun {
		fmt.Fprintf(&text, "%s: lacks %s of %d: %s (%s) would be sent, %s mounted\n", f.Registry, console.Count(f.Missing, "image"), len(f.Images),
			console.Count(f.Lacking.Blobs, "blob"), bundle.Bytes(f.Lacking.Bytes), console.Count(f.Lacking.Mounts, "blob"))
	} else {
		fmt.Fprintf(&text, "%s: %s sent, %s were there already\n  sent  %s (%s), and %d mounted\n", f.Registry, console.Count(f.Sent.Images, "image"), console.Count(there, "image"),
			console.Count(f.Sent.Blobs, "blob"), bundle.Bytes(f.Sent.Bytes), f.Sent.Mounted)
	}
	for _, at := range f.Images {
		switch {
		case at.Narrowed():
			fmt.Fprintf(&text, "  %s has another digest there: %s\n", at.Target, at.Digest)
		case f.DryRun && !at.Held:
			fmt.Fprintf(&text, "  %s is missing\n", at.Target)
		}
		if at.Was != "" {
			fmt.Fprintf(&text, "  %s was another image: %s\n", at.Target, at.Was)
		}
	}
	_, err := fmt.Fprint(a.out, text.String())
	return err
}
