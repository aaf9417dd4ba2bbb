package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/mensylisir/kubexm/bundle"
	"github.com/mensylisir/kubexm/bundle/fetch"
	"github.com/mensylisir/kubexm/bundle/transfer"
	"github.com/mensylisir/kubexm/cmd/kubexm/console"
	"github.com/mensylisir/kubexm/installer/report"
)

// remoteFlags are the connection settings of a registry.
type remoteFlags struct {
	plainHTTP    bool
	caFile       string
	dockerConfig string
	parallel     int
}

func (f *remoteFlags) add(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.BoolVar(&f.plainHTTP, "plain-http", false, usePlainHTTP)
	fs.StringVar(&f.caFile, "ca-file", "", "additional CA certificates (PEM) to verify the registry with")
	fs.StringVar(&f.dockerConfig, "docker-config", "", useDocker)
	fs.IntVarP(&f.parallel, "parallel", "p", 4, useParallel+"blobs")
	_ = cmd.MarkFlagFilename("ca-file", "pem", "crt")
	_ = cmd.MarkFlagFilename("docker-config", "json")
}

func (f *remoteFlags) remote(reference string) transfer.Remote {
	return transfer.Remote{
		Reference: reference, PlainHTTP: f.plainHTTP, CAFile: f.caFile, DockerConfig: f.dockerConfig,
		UserAgent: "kubexm/" + ownVersion(),
	}
}

func (a *app) bundlePush() *cobra.Command {
	f, trust, base := &remoteFlags{}, &policyFlags{}, &baseFlags{}
	cmd := &cobra.Command{
		Use:   "push ARCHIVE HOST/REPOSITORY:TAG",
		Short: "Push a complete bundle to a registry",
		Long: `Push a bundle unchanged to an OCI registry: every blob and manifest under its own digest, the
root under the tag, each signature as an artifact that refers to the root. Credentials come from
docker's config ("docker login", "oras login").

Blobs that the registry already has are not sent, so an interrupted push can be continued. The tag
is written last: it never refers to an incomplete bundle. A delta is completed from its --base, and
the complete bundle is pushed.

An image index stays as published and may refer to platforms that the bundle does not contain. Some
registries reject such an index; the error says so.`,
		Example: `  kubexm bundle push --key cosign.pub demo.tar.zst \
    registry.example/bundles/demo:2026-11
  kubexm bundle push --key cosign.pub demo.tar.zst \
    127.0.0.1:5000/demo:1 --plain-http`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := base.check(); err != nil {
				return err
			}
			policy, err := a.policy(trust, nil)
			if err != nil {
				return err
			}
			settle := frugal(a.env)
			b, err := bundle.Open(cmd.Context(), args[0], policy, base.bases...)
			if err != nil {
				return report.Refused(err)
			}
			defer b.Close()
			settle()
			p := a.progress(a.output != "text")
			p.Phase("push")
			done, err := transfer.Push(cmd.Context(), b, f.remote(args[1]), transfer.PushOptions{Parallel: f.parallel, Sent: p.Add, Planned: p.Expect})
			p.Stop()
			if err != nil {
				return report.RemoteRefused(err)
			}
			if a.structured() {
				return a.printValue(done)
			}
			_, err = fmt.Fprintf(a.out, "%s: %s sent in %s, %d already existed\n  root  %s\n", done.Reference, bundle.Bytes(done.Bytes),
				console.FormatCount(done.Sent, "part"), done.AlreadyPresent, done.Root)
			return err
		},
	}
	f.add(cmd)
	trust.add(cmd)
	base.add(cmd)
	completeArchives(cmd)
	a.outputFlag(cmd, "text", "json")
	return cmd
}

func (a *app) bundlePull() *cobra.Command {
	f, trust := &remoteFlags{}, &policyFlags{}
	source := &sourceFlags{}
	force, keep := false, false
	cmd := &cobra.Command{
		Use:   "pull HOST/REPOSITORY:TAG ARCHIVE",
		Short: "Pull a complete bundle from a registry",
		Long: `Download a bundle that "kubexm bundle push" sent, with its signatures, and write it as an archive.
The root digest is the same. The archive is identical if the same version of kubexm built it. The
signature is verified first, before any other content is downloaded.

An interrupted pull leaves ARCHIVE.partial; run again, it continues there.`,
		Example: `  kubexm bundle pull --key cosign.pub \
    registry.example/bundles/demo:2026-11 pulled.tar.zst`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := refuseExisting(args[1], force); err != nil {
				return err
			}
			policy, err := a.policy(trust, nil)
			if err != nil {
				return err
			}
			cache, release, err := a.heldCache(cmd.Context(), source)
			if err != nil {
				return err
			}
			defer release()
			p := a.progress(a.output != "text")
			defer p.Stop()
			from := f.remote(args[0])
			client, err := fetch.New(fetch.Options{
				Cache: cache, Sources: from.Sources(), Log: a.log, Progress: p, Parallel: f.parallel, UserAgent: from.UserAgent,
			})
			if err != nil {
				return err
			}
			p.Phase("pull")
			built, err := transfer.Pull(cmd.Context(), transfer.PullRequest{
				From: from, Policy: policy, Output: args[1], Cache: cache, Client: client, Parallel: f.parallel, Planned: p.Total, KeepCache: keep, Log: a.log,
			})
			p.Stop()
			if err != nil {
				return report.RemoteRefused(err)
			}
			if a.structured() {
				return a.printValue(built)
			}
			fmt.Fprintf(a.out, "%s: %s\n  root  %s\n", built.Path, bundle.Bytes(built.Bytes), built.Root)
			return a.printVerify(cmd.Context(), trust, built.Path)
		},
	}
	f.add(cmd)
	trust.add(cmd)
	cmd.Flags().StringVar(&source.cacheDir, "cache-dir", "", useCacheDir)
	_ = cmd.MarkFlagDirname("cache-dir")
	cmd.Flags().BoolVar(&force, "force", false, useForce)
	cmd.Flags().BoolVar(&keep, "keep-cache", false, useKeepCache)
	cmd.ValidArgsFunction = func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) != 1 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return []string{"tar.zst"}, cobra.ShellCompDirectiveFilterFileExt
	}
	a.outputFlag(cmd, "text", "json")
	return cmd
}
