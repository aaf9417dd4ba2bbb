package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/mensylisir/kubexm/registry/registrytest"
	"github.com/mensylisir/kubexm/testdata/upstream"
)

// product is the key of a script's own registry.
type product struct{}

// TestRegistryScripts runs the commands about registries as people do. Each script
// has a bundle, demo.tar.zst, an address to serve it at, $LISTEN, with a
// certificate, and a registry that stands already: $PRODUCT, and over TLS $SECURE,
// which docker.json logs in to. site.yaml is the config of a cluster whose registry
// takes pushes through SSH.
func TestRegistryScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/registry",
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup:               registrySetup(t),
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"pull":    pull,
			"push":    pushTo,
			"nodes":   nodesPull,
			"get":     get,
			"product": setProduct,
		},
	})
}

func registrySetup(t *testing.T) func(*testscript.Env) error {
	return func(e *testscript.Env) error {
		w := registrytest.NewContent("")
		layer := []byte(strings.Repeat("layer ", 60<<10))
		for ref, absent := range map[string][]string{"docker.io/library/busybox:1.36": nil, "registry.k8s.io/pause:3.10": {"s390x"}} {
			if _, err := w.Image(ref, []string{"amd64"}, absent, layer); err != nil {
				return err
			}
		}
		w.Binary("kubelet", "v1.32.2", []byte("a program"))
		w.Debs(map[string]string{"Packages": "Package: socat\n", "Release": "Suite: x\n", "pool/socat_1.7_amd64.deb": "a package"})
		if _, err := w.Build(t.Context(), e.WorkDir); err != nil {
			return err
		}
		p := registrytest.NewProduct()
		s := httptest.NewServer(p)
		e.Defer(s.Close)
		e.Values[product{}] = p
		free, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		e.Setenv("LISTEN", free.Addr().String())
		e.Setenv("PRODUCT", strings.TrimPrefix(s.URL, "http://"))
		e.Setenv("HOME", filepath.Join(e.WorkDir, "home")) // nobody's docker login
		config, err := writeCertificate(e.WorkDir)
		if err != nil {
			return err
		}
		secure := httptest.NewUnstartedServer(p)
		secure.TLS = config
		secure.Config.ErrorLog = log.New(io.Discard, "", 0) // clients that do not trust it are meant to
		secure.StartTLS()
		e.Defer(secure.Close)
		e.Setenv("SECURE", strings.TrimPrefix(secure.URL, "https://"))
		if err := errors.Join(addSite(e), writePackagesKey(filepath.Join(e.WorkDir, "packages.key"))); err != nil {
			return err
		}
		login := fmt.Sprintf(`{"auths": {%q: {"auth": %q}}}`, strings.TrimPrefix(secure.URL, "https://"), base64.StdEncoding.EncodeToString([]byte("admin:canary")))
		return errors.Join(os.WriteFile(filepath.Join(e.WorkDir, "docker.json"), []byte(login), 0o600), free.Close())
	}
}

// writeCertificate writes tls.crt, tls.key and ca.crt for the loopback address.
func writeCertificate(dir string) (*tls.Config, error) {
	config, ca, err := upstream.Certificate()
	if err != nil {
		return nil, err
	}
	key, err := x509.MarshalPKCS8PrivateKey(config.Certificates[0].PrivateKey)
	if err != nil {
		return nil, err
	}
	return config, errors.Join(
		os.WriteFile(filepath.Join(dir, "ca.crt"), ca, 0o600),
		os.WriteFile(filepath.Join(dir, "tls.crt"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: config.Certificates[0].Certificate[0]}), 0o600),
		os.WriteFile(filepath.Join(dir, "tls.key"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}), 0o600),
	)
}

// writePackagesKey writes an OpenPGP private key, as gpg exports it.
func writePackagesKey(file string) error {
	key, err := openpgp.NewEntity("packages of a site", "", "", nil)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	w, err := armor.Encode(&out, openpgp.PrivateKeyType, nil)
	if err != nil {
		return err
	}
	if err := errors.Join(key.SerializePrivate(w, nil), w.Close()); err != nil {
		return err
	}
	return os.WriteFile(file, out.Bytes(), 0o600)
}

// pull pulls an image whole: pull REFERENCE.
func pull(ts *testscript.TestScript, neg bool, args []string) {
	ref, err := name.ParseReference(args[0], name.Insecure)
	ts.Check(err)
	img, err := remote.Image(ref)
	if err == nil {
		layers, lerr := img.Layers()
		ts.Check(lerr)
		for _, l := range layers {
			rc, lerr := l.Compressed()
			ts.Check(lerr)
			_, lerr = io.Copy(io.Discard, rc)
			ts.Check(lerr)
			rc.Close()
		}
	}
	if (err != nil) != neg {
		ts.Fatalf("pull %s: %v", args[0], err)
	}
}

// get asks a server, which may still be starting, and compares: get URL STATUS [TEXT].
func get(ts *testscript.TestScript, _ bool, args []string) {
	var resp *http.Response
	var err error
	for range 2400 { // two minutes
		if resp, err = http.Get(args[0]); err == nil {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	ts.Check(err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	ts.Check(err)
	if strconv.Itoa(resp.StatusCode) != args[1] || !strings.Contains(string(body), strings.Join(args[2:], " ")) {
		ts.Fatalf("get %s: %d %s", args[0], resp.StatusCode, body)
	}
}

// setProduct makes the registry that stands already answer otherwise: product mount
// STATUS, product sparse STATUS CODE, product login USER PASSWORD.
func setProduct(ts *testscript.TestScript, _ bool, args []string) {
	p, ok := ts.Value(product{}).(*registrytest.Product)
	if !ok {
		ts.Fatalf("no product")
	}
	p.Lock()
	defer p.Unlock()
	switch args[0] {
	case "login":
		p.User, p.Password = args[1], args[2]
	default:
		status, err := strconv.Atoi(args[1])
		ts.Check(err)
		if args[0] == "mount" {
			p.Mount = status
		} else {
			p.Sparse, p.Code = status, args[2]
		}
	}
}
