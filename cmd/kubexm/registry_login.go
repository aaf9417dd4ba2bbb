package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"

	"github.com/spf13/cobra"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/credentials"

	"github.com/mensylisir/kubexm/installer"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/refusal"
	"github.com/mensylisir/kubexm/registry"
	"github.com/mensylisir/kubexm/registry/serve"
	"github.com/mensylisir/kubexm/steps/registryd"
)

// loginFlags are those of registry login.
type loginFlags struct {
	config, workdir string
	listen          string
	dockerConfig    string
}

func (a *app) registryLogin() *cobra.Command {
	f := &loginFlags{}
	cmd := &cobra.Command{
		Use:   "login -f CONFIG",
		Short: "Log docker in to a cluster's registry, to push your own images",
		Long: `Open a way for pushes to the registry that kubexm installed, and log docker in there, until
interrupted. Nodes reach a registry that is read only; pushes are taken on the loopback address of
its host alone. This command forwards an address of this machine to there, through SSH, and writes
the login that may push to docker's credentials under that address. docker, podman, crane, skopeo,
oras and helm read them. When it ends, the login is removed from there again.

What is pushed to 127.0.0.1:5001/team/app:1.0 is pulled on the nodes by the registry's own name:
dockerhub.kubexm.local/team/app:1.0. A tag that names an image of the bundle is compared with the
bundle whenever a node pulls that, and "kubexm install" puts the bundle's image back.

While this runs, no other kubexm works on the cluster from this machine.`,
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
	fs.StringVar(&f.dockerConfig, "docker-config", "", also(useDocker, "the login is written there"))
	_ = cmd.MarkFlagRequired("filename")
	_ = cmd.MarkFlagFilename("filename", "yaml", "yml")
	_ = cmd.MarkFlagFilename("docker-config", "json")
	_ = cmd.MarkFlagDirname("workdir")
	a.outputFlag(cmd, "text", "json")
	return cmd
}

// siteRegistry is the registry of a cluster, for who pushes, through one of its hosts.
type siteRegistry struct {
	registry.Target
	session *installer.Session
	host    string
}

// openRegistry reaches the registry of a cluster through its host, or through the
// first master that answers where the registry exists already.
func (a *app) openRegistry(ctx context.Context, workdir string, c *manifest.Cluster) (*siteRegistry, error) {
	role := manifest.RoleRegistry
	if registryd.Stands(c) {
		role = manifest.RoleMaster
	}
	hosts := c.HostsWith(role)
	if len(hosts) == 0 || c.Spec.Registry.PrivateRegistry == "" {
		return nil, &refusal.Error{Err: errors.New("the config has no registry"), Kind: refusal.Usage, Advice: "name another one with --to, or a host in spec.roleGroups.registry"}
	}
	session, host, err := installer.ReachOne(ctx, a.options(workdir, 1, c), hosts)
	if err != nil {
		return nil, err
	}
	s := &siteRegistry{session: session, host: host.Name}
	s.Target, err = registryd.Push(ctx, c, host)
	if errors.Is(err, registryd.ErrNone) {
		err = &refusal.Error{Err: fmt.Errorf("there is no registry of cluster %s on %s", c.Metadata.Name, s.host), Kind: refusal.Failed, Advice: "make it: kubexm install --bundle …"}
	}
	if err != nil {
		return nil, errors.Join(err, session.Close())
	}
	return s, nil
}

func (a *app) login(ctx context.Context, f *loginFlags) error {
	if host, _, err := net.SplitHostPort(f.listen); err != nil || !net.ParseIP(host).IsLoopback() {
		return &refusal.Error{Err: fmt.Errorf("--listen %s is no loopback address with a port", f.listen), Kind: refusal.Usage, Advice: "write it as 127.0.0.1:PORT"}
	}
	c, err := a.loadCluster(f.config, "")
	if err != nil {
		return err
	}
	c.PlaceFiles(folderOf(f.config))
	if at := c.Spec.Registry; registryd.Stands(c) {
		return &refusal.Error{Err: fmt.Errorf("registry %s is not one that kubexm installed", at.PrivateRegistry), Kind: refusal.Usage,
			Advice: fmt.Sprintf("log in there yourself: docker login %s --username %s", at.PrivateRegistry, orWord(at.Auth(at.PrivateRegistry).Username, "USER"))}
	}
	s, err := a.openRegistry(ctx, f.workdir, c)
	if err != nil {
		return err
	}
	defer s.session.Close()
	if err := registry.AskPull(ctx, s.Target); err != nil {
		return &refusal.Error{Err: fmt.Errorf("registry %s on %s: %w", s.Host, s.host, err), Kind: refusal.Failed, Advice: "see `systemctl status kubexm-registry-push` on " + s.host}
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", f.listen)
	if err != nil {
		return &refusal.Error{Err: err, Kind: refusal.Failed, Advice: "choose another address with --listen; port 0 is any that is free"}
	}
	address := l.Addr().String()
	forget, err := writeLogin(ctx, f.dockerConfig, address, auth.Credential{Username: s.Username, Password: s.Password})
	if err != nil {
		return errors.Join(err, l.Close())
	}
	if err := a.printLogin(c, s, address); err != nil {
		return errors.Join(err, forget(), l.Close())
	}
	return errors.Join(serve.Run(ctx, l, forward(s.Target, a.log), a.log), forget())
}

func orWord(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// forward passes requests on to a registry as they come, with their own login. The
// registry is told which address its client speaks to, since it answers with
// addresses for uploads.
func forward(t registry.Target, log *slog.Logger) http.Handler {
	way := t.Client.Transport
	if w, ok := way.(*http.Transport); ok {
		w = w.Clone()
		w.DisableKeepAlives = true // a push whose connection ends while it is idle cannot be sent again from here
		way = w
	}
	return &httputil.ReverseProxy{
		Transport: way,
		ErrorLog:  slog.NewLogLogger(log.Handler(), slog.LevelError),
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = "https", t.Host
			r.Out.Host = r.In.Host
			r.Out.Header.Set("X-Forwarded-Proto", "http")
			r.Out.Header.Set("X-Forwarded-Host", r.In.Host)
		},
		ModifyResponse: func(r *http.Response) error {
			to, err := url.Parse(r.Header.Get("Location"))
			if err != nil || to.Host == "" {
				return nil //nolint:nilerr // none, or none that anybody can follow
			}
			to.Scheme, to.Host = "http", r.Request.Host // where it does not go by what it is told
			r.Header.Set("Location", to.String())
			return nil
		},
	}
}

// writeLogin puts a login where docker keeps its own, and gives what puts back
// what was there.
func writeLogin(ctx context.Context, file, address string, login auth.Credential) (forget func() error, err error) {
	var store credentials.Store
	if file != "" {
		store, err = credentials.NewFileStore(file)
	} else {
		store, err = credentials.NewStoreFromDocker(credentials.StoreOptions{AllowPlaintextPut: true})
	}
	if err != nil {
		return nil, fmt.Errorf("read docker's credentials: %w", err)
	}
	was, err := store.Get(ctx, address)
	if err != nil {
		return nil, fmt.Errorf("read docker's credentials: %w", err)
	}
	if err := store.Put(ctx, address, login); err != nil {
		return nil, fmt.Errorf("write docker's credentials: %w", err)
	}
	return func() error {
		ctx := context.WithoutCancel(ctx)
		if was != auth.EmptyCredential {
			return store.Put(ctx, address, was)
		}
		return store.Delete(ctx, address)
	}, nil
}

// printLogin says where pushes go, as one line of JSON or for people.
func (a *app) printLogin(c *manifest.Cluster, s *siteRegistry, address string) error {
	if a.structured() {
		return a.printLine(struct {
			Address  string `json:"address"`
			Registry string `json:"registry"`
			Host     string `json:"host"`
			Username string `json:"username"`
		}{address, c.Spec.Registry.PrivateRegistry, s.host, s.Username})
	}
	_, err := fmt.Fprintf(a.out, `registry %s on %s takes pushes at %s, until interrupted; docker is logged in there
  push  docker tag app:1.0 %s/team/app:1.0 && docker push %s/team/app:1.0
  pods  image: %s/team/app:1.0
`, c.Spec.Registry.PrivateRegistry, s.host, address, address, address, c.Spec.Registry.PrivateRegistry)
	return err
}
