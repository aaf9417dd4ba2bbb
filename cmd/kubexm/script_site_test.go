package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"time"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/crypto/ssh/knownhosts"
	"oras.land/oras-go/v2"
	orasremote "oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/credentials"

	"github.com/mensylisir/kubexm/registry/registrytest"
	"github.com/mensylisir/kubexm/steps/connector/sshtest"
	"github.com/mensylisir/kubexm/steps/pki"
	"github.com/mensylisir/kubexm/steps/registryd"
)

// siteProduct is the key of the registry of a script's site.
type siteProduct struct{}

// addSite gives a script a cluster, site.yaml: one host over SSH, whose registry takes
// pushes on the loopback address of that host alone, as kubexm sets it up. Its keys
// and passwords are in the cluster's folder.
func addSite(e *testscript.Env) error {
	access := registryd.Access{Dir: filepath.Join(e.WorkDir, ".kubexm", "demo", "certs", "registry")}
	push, err := access.Password(registryd.PushUser)
	if err != nil {
		return err
	}
	pull, err := access.Password(registryd.PullUser)
	if err != nil {
		return err
	}
	ca, err := access.Authority(time.Now())
	if err != nil {
		return err
	}
	leaf, err := pki.Store{Dir: access.Dir}.Leaf("server", ca, pki.Request{CommonName: "registry.site", Names: []string{"registry.site"}, Server: true}, time.Now())
	if err != nil {
		return err
	}
	cert, key, err := leaf.Encode()
	if err != nil {
		return err
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return err
	}
	p := registrytest.NewProduct()
	p.User, p.Password, p.Readers = registryd.PushUser, push, map[string]string{registryd.PullUser: pull}
	e.Values[siteProduct{}] = p
	srv := httptest.NewUnstartedServer(absolute(p))
	srv.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.StartTLS()
	e.Defer(srv.Close)
	sshd, err := sshtest.Serve(sshtest.Config{Password: "secret", Dir: e.WorkDir, Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		if address != "127.0.0.1:5001" {
			return nil, errors.New(address + ": connection refused")
		}
		return (&net.Dialer{}).DialContext(ctx, network, srv.Listener.Addr().String())
	}})
	if err != nil {
		return err
	}
	e.Defer(sshd.Close)
	e.Setenv("SSH_PASSWORD", "secret")
	home := filepath.Join(e.WorkDir, "home", ".ssh")
	return errors.Join(os.MkdirAll(home, 0o700),
		os.WriteFile(filepath.Join(home, "known_hosts"), []byte(knownhosts.Line([]string{sshd.Addr}, sshd.HostKey())+"\n"), 0o600),
		os.WriteFile(filepath.Join(e.WorkDir, "site.yaml"), fmt.Appendf(nil, `apiVersion: kubexm.mensylisir.io/v1alpha1
kind: Cluster
metadata: {name: demo}
spec:
  hosts: [{name: a, address: %s, port: %d, user: root, password: "${env:SSH_PASSWORD}"}]
  roleGroups: {master: [a], worker: [a], registry: [a]}
  kubernetes: {version: v1.34.10}
  etcd: {type: kubeadm}
  network: {plugin: flannel}
  registry: {privateRegistry: "registry.site:5000", namespaceOverride: kube}
`, sshd.Host, sshd.Port), 0o600))
}

// absolute answers as distribution does: addresses for uploads are whole, with the
// name by which the registry was asked.
func absolute(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(&located{w, "https://" + r.Host}, r)
	})
}

// located completes the address in an answer.
type located struct {
	http.ResponseWriter
	base string
}

func (l *located) WriteHeader(status int) {
	if to := l.Header().Get("Location"); to != "" {
		l.Header().Set("Location", l.base+to)
	}
	l.ResponseWriter.WriteHeader(status)
}

// pushTo pushes an artifact of nobody's, as oras does, with the logins of docker's
// configuration: push REFERENCE CONFIG.
func pushTo(ts *testscript.TestScript, neg bool, args []string) {
	repo, err := orasremote.NewRepository(args[0])
	ts.Check(err)
	repo.PlainHTTP = true
	ctx := context.Background()
	for range 1200 { // a minute, for one that is still starting, or has not written the login yet
		store, serr := credentials.NewFileStore(ts.MkAbs(args[1]))
		ts.Check(serr)
		repo.Client = &auth.Client{Client: &http.Client{}, Credential: credentials.Credential(store)}
		if err = pushArtifact(ctx, repo); err == nil || neg || !errors.As(err, new(*net.OpError)) && !errors.Is(err, auth.ErrBasicCredentialNotFound) {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	if (err != nil) != neg {
		ts.Fatalf("push %s: %v", args[0], err)
	}
}

func pushArtifact(ctx context.Context, repo *orasremote.Repository) error {
	const kind = "application/vnd.example.app"
	layer, err := oras.PushBytes(ctx, repo, kind, []byte("an app"))
	if err != nil {
		return err
	}
	d, err := oras.PackManifest(ctx, repo, oras.PackManifestVersion1_1, kind, oras.PackManifestOptions{Layers: []v1.Descriptor{layer}})
	if err != nil {
		return err
	}
	return repo.Tag(ctx, d, repo.Reference.Reference)
}

// nodesPull reports whether the site's registry has a tag: nodes REPOSITORY TAG.
func nodesPull(ts *testscript.TestScript, neg bool, args []string) {
	p, ok := ts.Value(siteProduct{}).(*registrytest.Product)
	if has := ok && p.Manifest(args[0], args[1]) != ""; has == neg {
		ts.Fatalf("the site's registry has %s:%s: %t", args[0], args[1], has)
	}
}
