package main

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/spf13/cobra"
	"oras.land/oras-go/v2/registry/remote/auth"

	"github.com/mensylisir/kubexm/installer"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/refusal"
	"github.com/mensylisir/kubexm/registry"
	"github.com/mensylisir/kubexm/registry/serve"
	"github.com/mensylisir/kubexm/steps/registryd"
)

// loginFlags are the flags of registry login.
type loginFlags struct {
	config, workdir string
	listen          string
	dockerConfig    string
}

func (a *app) registryLogin() *cobra.Command {
	f := &loginFlags{}
	cmd := &cobra.Command{
		Use:   "login -f CONFIG",
		Short: "Log in to a cluster's registry, to push your own images",
		Long: `Forward a local address to the registry that kubexm installed, and log docker in there, until
interrupted.

The registry is read-only for the nodes; it accepts pushes only on the loopback address of its host.
This command forwards an address of this machine to it through SSH. It writes the credentials for
pushing to docker's config, where docker, podman, crane, skopeo, oras and helm read them. When the
command ends, the credentials are removed.

An image that is pushed to 127.0.0.1:5001/team/app:1.0 is pulled on the nodes with the registry's own
name: dockerhub.kubexm.local/team/app:1.0. If you push over the tag of an image of the bundle, nodes
detect the difference when they pull it. "kubexm install" restores the bundle's image.

While this command runs, no other kubexm on this machine can work on the cluster.`,
		Example: `  kubexm registry login -f config.yaml
  docker tag app:1.0 127.0.0.1:5001/team/app:1.0
  docker push 127.0.0.1:5001/team/app:1.0
  crane push app.tar 127.0.0.1:5001/team/app:1.0`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.login(cmd.Context(), f) },
	}
	fs := cmd.Flags()
	fs.StringVarP(&f.config, "filename", "f", "", useConfig)
	fs.StringVarP(&f.workdir, "workdir", "w", ".", useWorkdir)
	fs.StringVar(&f.listen, "listen", "127.0.0.1:5001", "address and port to listen on; a loopback address")
	fs.StringVar(&f.dockerConfig, "docker-config", "", also(useDocker, "the credentials are written there"))
	_ = cmd.MarkFlagRequired("filename")
	_ = cmd.MarkFlagFilename("filename", "yaml", "yml")
	_ = cmd.MarkFlagFilename("docker-config", "json")
	_ = cmd.MarkFlagDirname("workdir")
	a.outputFlag(cmd, "text", "json")
	return cmd
}

func (a *app) login(ctx context.Context, f *loginFlags) error {
	if host, _, err := net.SplitHostPort(f.listen); err != nil || !net.ParseIP(host).IsLoopback() {
		return &refusal.Error{Err: fmt.Errorf("--listen %s is not a loopback address with a port", f.listen), Kind: refusal.Usage, Advice: "write it as 127.0.0.1:PORT"}
	}
	c, err := a.loadCluster(f.config, "")
	if err != nil {
		return err
	}
	c.ResolvePaths(folderOf(f.config))
	if at := c.Spec.Registry; registryd.UsesExisting(c) {
		return &refusal.Error{Err: fmt.Errorf("registry %s was not installed by kubexm", at.PrivateRegistry), Kind: refusal.Usage,
			Advice: fmt.Sprintf("docker login %s --username %s", at.PrivateRegistry, orWord(at.Auth(at.PrivateRegistry).Username, "USER"))}
	}
	s, err := installer.OpenRegistry(ctx, a.options(f.workdir, 1, c))
	if err != nil {
		return err
	}
	defer s.Session.Close()
	if err := registry.CheckPull(ctx, s.Target); err != nil {
		return &refusal.Error{Err: fmt.Errorf("registry %s on %s: %w", s.Host, s.Via, err), Kind: refusal.Failed, Advice: "run `systemctl status kubexm-registry-push` on " + s.Via}
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", f.listen)
	if err != nil {
		return &refusal.Error{Err: err, Kind: refusal.Failed, Advice: "choose another address with --listen; port 0 is any free port"}
	}
	address := l.Addr().String()
	forget, err := registry.WriteLogin(ctx, f.dockerConfig, address, auth.Credential{Username: s.Username, Password: s.Password})
	if err != nil {
		return errors.Join(err, l.Close())
	}
	if err := a.printLogin(c, s, address); err != nil {
		return errors.Join(err, forget(), l.Close())
	}
	return errors.Join(serve.Run(ctx, l, registry.Forward(s.Target, a.log), a.log), forget())
}

func orWord(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// printLogin prints the address to push to, as text or as one line of JSON.
func (a *app) printLogin(c *manifest.Cluster, s *installer.Registry, address string) error {
	if a.structured() {
		return a.printLine(struct {
			Address  string `json:"address"`
			Registry string `json:"registry"`
			Host     string `json:"host"`
			Username string `json:"username"`
		}{address, c.Spec.Registry.PrivateRegistry, s.Via, s.Username})
	}
	_, err := fmt.Fprintf(a.out, `registry %s on %s accepts pushes at %s, until interrupted; docker is logged in
  push  docker tag app:1.0 %s/team/app:1.0 && docker push %s/team/app:1.0
  pods  image: %s/team/app:1.0
`, c.Spec.Registry.PrivateRegistry, s.Via, address, address, address, c.Spec.Registry.PrivateRegistry)
	return err
}
