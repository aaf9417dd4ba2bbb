package registry_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"oras.land/oras-go/v2/registry/remote/errcode"

	"github.com/mensylisir/kubexm/registry"
	"github.com/mensylisir/kubexm/registry/registrytest"
)

func TestAskedBeforeAnythingIsSent(t *testing.T) {
	for name, c := range map[string]struct {
		change     func(*registrytest.Product, *registry.Target)
		pull, push int // the status of a refusal; 0 is none
	}{
		"anonymous": {func(*registrytest.Product, *registry.Target) {}, 0, 0},
		"with a user": {func(p *registrytest.Product, r *registry.Target) {
			p.User, p.Password, r.Username, r.Password = "u", "p", "u", "p"
		}, 0, 0},
		"anonymous, where a user is required": {func(p *registrytest.Product, _ *registry.Target) { p.User, p.Password = "u", "p" }, 401, 401},
		"with another password": {func(p *registrytest.Product, r *registry.Target) {
			p.User, p.Password, r.Username, r.Password = "u", "p", "u", "q"
		}, 401, 401},
		"without the project": {func(p *registrytest.Product, _ *registry.Target) { p.Project = "other/" }, 0, 404},
	} {
		t.Run(name, func(t *testing.T) {
			p, target := product(t)
			c.change(p, &target)
			for what, k := range map[string]struct {
				ask  func(context.Context) error
				want int
			}{
				"pull": {func(ctx context.Context) error { return registry.CheckPull(ctx, target) }, c.pull},
				"push": {func(ctx context.Context) error { return registry.CheckPush(ctx, target, "site/x") }, c.push},
			} {
				err := k.ask(t.Context())
				var r *errcode.ErrorResponse
				switch {
				case k.want == 0 && err != nil:
					t.Errorf("%s: %v", what, err)
				case k.want != 0 && (!errors.As(err, &r) || r.StatusCode != k.want) && !strings.Contains(err.Error(), "credential"):
					t.Errorf("%s: %v, want %d", what, err, k.want)
				}
				if err != nil && strings.Contains(err.Error(), "Basic ") {
					t.Errorf("%s: %v", what, err)
				}
			}
			if p.OpenUploads != 0 || p.Uploads != 0 {
				t.Errorf("%d uploads are left, %d done", p.OpenUploads, p.Uploads)
			}
		})
	}
	p, target := product(t)
	p.Tokens, target.Username, target.Password = true, "u", "p"
	if err := registry.CheckPull(t.Context(), target); !errors.Is(err, registry.ErrTokensOnly) {
		t.Errorf("tokens alone: %v", err)
	}
	target.Host = "127.0.0.1:1"
	if err := registry.CheckPull(t.Context(), target); err == nil || errors.As(err, new(*errcode.ErrorResponse)) {
		t.Errorf("no server: %v", err)
	}
}

// folder makes one with files in it.
func folder(t *testing.T, files map[string][]byte) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestCertificatesOfAFolder(t *testing.T) {
	srv := httptest.NewUnstartedServer(registrytest.NewProduct())
	srv.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert, MinVersion: tls.VersionTLS12}
	srv.StartTLS()
	t.Cleanup(srv.Close)
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw})
	der, err := x509.MarshalPKCS8PrivateKey(srv.TLS.Certificates[0].PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	key := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	for name, c := range map[string]struct {
		files    map[string][]byte
		insecure bool
		want     string // of the error; "" is none
	}{
		"CA and client":     {map[string][]byte{"ca.crt": cert, "b.crt": cert, "me.cert": cert, "me.key": key, "notes.txt": nil}, false, ""},
		"unchecked":         {map[string][]byte{"me.cert": cert, "me.key": key}, true, ""},
		"no CA":             {map[string][]byte{"me.cert": cert, "me.key": key}, false, "unknown authority"},
		"no client":         {map[string][]byte{"ca.crt": cert}, false, "certificate required"},
		"no key":            {map[string][]byte{"ca.crt": cert, "me.cert": cert}, false, "no *.key file of the same name"},
		"another's key":     {map[string][]byte{"ca.crt": cert, "me.cert": cert, "me.key": []byte("none")}, false, "the *.cert file and its key"},
		"two clients":       {map[string][]byte{"a.cert": cert, "a.key": key, "b.cert": cert, "b.key": key}, false, "more than one *.cert"},
		"a CA that is none": {map[string][]byte{"ca.crt": []byte("text")}, false, "no PEM certificate"},
		"nothing":           {nil, false, "contains neither *.crt nor *.cert"},
	} {
		t.Run(name, func(t *testing.T) {
			certs, err := registry.ReadCerts(folder(t, c.files))
			if err == nil {
				var conf *tls.Config
				if conf, err = certs.TLS(c.insecure); err == nil {
					client := &http.Client{Transport: &http.Transport{TLSClientConfig: conf}}
					defer client.CloseIdleConnections()
					err = registry.CheckPull(t.Context(), registry.Target{Mapper: registry.Mapper{Host: strings.TrimPrefix(srv.URL, "https://")}, Client: client})
				}
			}
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
	if c, err := registry.ReadCerts(""); err != nil || c.CA != nil {
		t.Errorf("no folder: %v", err)
	}
	if _, err := registry.ReadCerts("nowhere"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a folder that is not there: %v", err)
	}
}
