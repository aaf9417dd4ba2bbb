package registryd_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/registry"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/registryd"
	"github.com/mensylisir/kubexm/steps/runner"
	"github.com/mensylisir/kubexm/steps/steptest"
)

// distribution is the registry that the lab builds.
const distribution = "v3.0.0"

// real is the site's registry as its host would run it: both services, with the
// configuration and files of registryd.Install, on ports of this machine.
type real struct {
	*wire
	cluster    *manifest.Cluster
	host       *steps.Host
	bundle     *imageBundle
	pull, push string // addresses
	log        bytes.Buffer
}

// Dial leads from the registry's host, and from a node, to the services.
func (r *real) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	to := r.pull
	if address == "127.0.0.1:5001" {
		to = r.push
	}
	return (&net.Dialer{}).DialContext(ctx, network, to)
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func startReal(t *testing.T) *real {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Skip(err)
	}
	program := filepath.Join(cache, "kubexm-lab", "components", "registry", distribution, runtime.GOARCH, "registry")
	if _, err := os.Stat(program); err != nil {
		t.Skipf("the lab's registry is not built: %v", err)
	}
	c := steptest.Cluster(t, steptest.Small+"  registry: {privateRegistry: 'registry.site.example:5000'}\n")
	store := t.TempDir()
	c.Spec.Registry.RegistryDataDir = store
	r := &real{cluster: c, bundle: newImageBundle(t, "registry.k8s.io/kube-proxy:v1.32.2", "registry.k8s.io/pause:3.10"), pull: freePort(t), push: freePort(t)}
	kase := steptest.Case{Cluster: c, Workdir: t.TempDir(), Artifacts: r.bundle}
	r.wire = &wire{Sim: kase.Sim(t)}
	install := registryd.Install(c)
	if err := install.Run(t.Context(), kase.NewHost(t, r.Sim, install)); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, name := range []string{"config.yml", "push.yml", "htpasswd", "push.htpasswd", "tls.crt", "tls.key"} {
		text := strings.NewReplacer("/etc/kubexm/registry", dir, "addr: :5000", "addr: "+r.pull, "addr: 127.0.0.1:5001", "addr: "+r.push).Replace(r.Read("/etc/kubexm/registry/" + name))
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for config, address := range map[string]string{"config.yml": r.pull, "push.yml": r.push} {
		var out bytes.Buffer
		cmd := exec.CommandContext(t.Context(), program, "serve", filepath.Join(dir, config))
		cmd.Env = append(os.Environ(), "OTEL_TRACES_EXPORTER=none")
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait() // it was killed
			if t.Failed() {
				t.Logf("%s ends with\n%s", config, out.Bytes()[max(0, out.Len()-4000):])
			}
		})
		listens(t, address)
	}
	step := registryd.Seed(c, nil)
	r.host = kase.NewHost(t, r.Sim, step)
	r.host.Runner = runner.New(r, runner.Options{})
	r.host.Log = slog.New(slog.NewTextHandler(&r.log, nil))
	return r
}

func listens(t *testing.T, address string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
		if err == nil {
			_ = conn.Close()
			return
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

// ask sends a request as one of the users to one of the services.
func (r *real) ask(t *testing.T, address, user, method, path, media, body string) (status int, answer string) {
	t.Helper()
	a := registryd.AccessOf(r.host)
	ca, err := a.CA(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	password, err := a.Password(user)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, ServerName: "registry.site.example", MinVersion: tls.VersionTLS12}}}
	defer client.CloseIdleConnections()
	q, err := http.NewRequestWithContext(t.Context(), method, "https://"+address+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	q.SetBasicAuth(user, password)
	q.Header.Set("Accept", media)
	if body != "" {
		q.Header.Set("Content-Type", media)
	}
	resp, err := client.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// TestNodesCannotWrite fills a real registry, and has root on a node try what it
// can with the login that lies there: nothing changes. A tag that is changed by
// somebody who has the other login is noticed by the next node that pulls.
func TestNodesCannotWrite(t *testing.T) {
	r := startReal(t)
	seed := registryd.Seed(r.cluster, nil)
	if err := seed.Run(t.Context(), r.host); err != nil {
		t.Fatal(err)
	}
	if v, err := seed.Precheck(t.Context(), r.host); err != nil || v != steps.Done {
		t.Fatalf("%v, %v", v, err)
	}
	const repo = "/v2/registry.k8s.io/kube-proxy"
	proxy, pause := r.bundle.pins[0], r.bundle.pins[1]
	blob := r.bundle.trees[pause.Reference][1].Digest.String()
	other := string(r.bundle.blobs[pause.Digest])
	for name, c := range map[string]struct {
		method, path, media, body string
	}{
		"push":               {http.MethodPost, repo + "/blobs/uploads/", "application/octet-stream", ""},
		"push in one":        {http.MethodPost, repo + "/blobs/uploads/?digest=" + blob, "application/octet-stream", "x"},
		"mount":              {http.MethodPost, repo + "/blobs/uploads/?mount=" + blob + "&from=registry.k8s.io/pause", "", ""},
		"overwrite a tag":    {http.MethodPut, repo + "/manifests/v1.32.2", pause.MediaType, other},
		"a new tag":          {http.MethodPut, "/v2/registry.k8s.io/pause/manifests/new", pause.MediaType, other},
		"delete a tag":       {http.MethodDelete, repo + "/manifests/v1.32.2", "", ""},
		"delete a manifest":  {http.MethodDelete, repo + "/manifests/" + proxy.Digest, "", ""},
		"delete a layer":     {http.MethodDelete, "/v2/registry.k8s.io/pause/blobs/" + blob, "", ""},
		"go on with uploads": {http.MethodPatch, repo + "/blobs/uploads/3f9a8a1e-0000-4000-8000-000000000000", "application/octet-stream", "x"},
	} {
		if status, answer := r.ask(t, r.pull, registryd.PullUser, c.method, c.path, c.media, c.body); status != http.StatusMethodNotAllowed && (name != "go on with uploads" || status != http.StatusNotFound) {
			t.Errorf("%s, as a node: %d %s", name, status, answer)
		}
		if status, answer := r.ask(t, r.push, registryd.PullUser, c.method, c.path, c.media, c.body); status != http.StatusUnauthorized {
			t.Errorf("%s, as a node on the registry's host: %d %s", name, status, answer)
		}
		if status, answer := r.ask(t, r.pull, registryd.PushUser, c.method, c.path, c.media, c.body); status != http.StatusUnauthorized {
			t.Errorf("%s, with the other login where nodes pull: %d %s", name, status, answer)
		}
		if name == "delete a manifest" || name == "delete a layer" { // who pushes a tag may also take it away
			if status, answer := r.ask(t, r.push, registryd.PushUser, c.method, c.path, c.media, c.body); status != http.StatusMethodNotAllowed {
				t.Errorf("%s, as kubexm: %d %s", name, status, answer)
			}
		}
	}
	if status, text := r.ask(t, r.pull, registryd.PullUser, http.MethodGet, repo+"/manifests/v1.32.2", proxy.MediaType, ""); status != http.StatusOK || text != string(r.bundle.blobs[proxy.Digest]) {
		t.Errorf("after all that the tag is %d %s", status, text)
	}
	r.isRead(t)

	tags := registryd.TagsAt(r.cluster)
	if err := tags(t.Context(), r.host, r.bundle.pins); err != nil {
		t.Fatal(err)
	}
	if status, answer := r.ask(t, r.push, registryd.PushUser, http.MethodPut, "/v2/registry.k8s.io/pause/manifests/3.10", "application/vnd.oci.image.index.v1+json",
		`{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[]}`); status != http.StatusCreated {
		t.Fatalf("%d %s", status, answer)
	}
	err := tags(t.Context(), r.host, r.bundle.pins)
	var changed *registryd.TagError
	if !errors.As(err, &changed) || changed.Reference != pause.Reference || changed.Want != pause.Digest || strings.Contains(err.Error(), "kube-proxy") {
		t.Errorf("a changed tag: %v", err)
	}
	if err := seed.Run(t.Context(), r.host); err != nil {
		t.Fatal(err)
	}
	if changed != nil && !strings.Contains(r.log.String(), changed.Digest) {
		t.Errorf("the filling does not say what was there:\n%s", &r.log)
	}
	if err := tags(t.Context(), r.host, r.bundle.pins); err != nil {
		t.Errorf("after the bundle's image was put back: %v", err)
	}
}

// isRead looks for layers and surveys, as deltas and inventories do.
func (r *real) isRead(t *testing.T) {
	t.Helper()
	target, err := registryd.Reach(r.cluster, r.host)
	if err != nil {
		t.Fatal(err)
	}
	defer target.Client.CloseIdleConnections()
	has, err := registry.Survey(t.Context(), target, r.bundle.pins, 2)
	if err != nil || len(has.Images) != 2 || len(has.Layers) != 2 {
		t.Errorf("a survey found %+v, %v", has, err)
	}
	layer := r.bundle.trees[r.bundle.pins[0].Reference][1].Digest.String()
	home, err := registry.Find(t.Context(), target, map[string][]string{layer: nil}, nil, 1)
	if err != nil || home[layer] == "" {
		t.Errorf("a layer is found in %v, %v", home, err)
	}
	if target.Username != registryd.PullUser {
		t.Errorf("who only reads logs in as %s", target.Username)
	}
}
