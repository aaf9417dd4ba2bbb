package e2e

import (
	"encoding/base64"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/bcrypt"

	"github.com/mensylisir/kubexm/testdata/lab"
	"github.com/mensylisir/kubexm/testdata/lab/components"
)

// Passwords at the registry that stands already: of the user who pushes, and of the
// one that nodes pull as.
const (
	registryPassword = "canary-of-the-registry"
	pullPassword     = "canary-of-the-nodes"
)

// TestClusterExistingRegistry is a cluster whose images come from a registry that
// stands already, on a host that is no member: with a certificate of its own CA,
// users, and its makers' own settings, which refuse an index with gaps. This
// machine does not reach it. It takes some minutes, and KUBEXM_REGISTRY=existing asks for it:
// `make shown SCENARIO=registry-existing` sets that.
func TestClusterExistingRegistry(t *testing.T) {
	if os.Getenv("KUBEXM_REGISTRY") != "existing" {
		t.Skip("KUBEXM_REGISTRY=existing runs it")
	}
	l := lab.Start(t, 3, lab.Alone())                // inventories are compared
	l.Inside(netip.MustParsePrefix("10.206.0.0/20")) // of testdata/registry-existing.yaml
	cache, err := components.DefaultCache()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("testdata/registry-existing.yaml")
	if err != nil {
		t.Fatal(err)
	}
	s := &labSite{Lab: l, dir: t.TempDir(), cache: cache, config: l.Config(string(text))}
	config := s.write(t, "config.yaml", s.config)
	s.serve(t)
	s.bundle = s.build(t, "config.yaml")
	before := s.inventories(t)
	s.startRegistry(t)

	t.Setenv("REGISTRY_PULL_PASSWORD", pullPassword)
	// Wrong before anything is changed: no folder of certificates, another password.
	said(t, s.install(t, s.variant(t, "nocerts.yaml", "certsPath: certs", "certsPath: nowhere")), 2, "certsPath", "nowhere", "no such file")
	wrong := s.variant(t, "wrong.yaml", `"${env:REGISTRY_PASSWORD}"`, "not-the-one")
	r := s.install(t, wrong)
	said(t, r, 3, "images.site.example:8443", "401", `spec.registry.auths["images.site.example:8443"]`)
	for _, h := range s.Hosts[:2] {
		s.on(t, h.Name, "! test -e /etc/containerd && ! test -e /var/lib/kubexm && ! grep -q kubexm /etc/hosts")
	}

	t.Setenv("REGISTRY_PASSWORD", registryPassword)
	r = s.install(t, config)
	// Its password file authorises whoever it authenticates, so that the nodes' user may push there, too.
	said(t, r, 0, "create of cluster site: done", "the nodes' login (user reader) may push", "the workdir host cannot reach images.site.example:8443", "through the SSH connection to h1")
	if strings.Contains(r.stdout+r.stderr, registryPassword) || strings.Contains(r.stdout+r.stderr, pullPassword) {
		t.Error("the password was shown")
	}
	t.Log("\n" + s.kubectl(t, "get", "nodes,pods", "-A", "-o", "wide"))
	said(t, s.install(t, config), 0, "0 steps ran")
	s.pulledFromThere(t)

	r = s.kubexm(t, "delete", "cluster", "-f", config, "--yes")
	said(t, r, 0, "delete of cluster site: done", "images remain in the registry images.site.example:8443/kube/one")
	s.on(t, "h3", "test -e /srv/outside/data/docker/registry/v2/repositories/kube/one/registry.k8s.io/pause/_manifests/tags/")
	s.on(t, "h3", "systemctl stop outside; nft delete table inet outside; rm -rf /srv/outside")
	s.asBefore(t, before)
}

// startRegistry brings up the distribution registry on h3, as its makers set it up,
// and has it refuse the workdir host.
func (s *labSite) startRegistry(t *testing.T) {
	t.Helper()
	rows, err := components.Table("")
	if err != nil {
		t.Fatal(err)
	}
	c, err := components.Find(rows, "registry")
	if err != nil {
		t.Fatal(err)
	}
	users := ""
	for user, password := range map[string]string{"robot": registryPassword, "reader": pullPassword} {
		hash, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.MinCost)
		if err != nil {
			t.Fatal(err)
		}
		users += user + ":" + string(hash) + "\n"
	}
	s.on(t, "h3", "mkdir -p /srv/outside/data")
	s.put(t, "h3", filepath.Join(c.Dir(s.cache), "registry"), "/srv/outside/registry")
	s.on(t, "h3", `cd /srv/outside
cat > config.yml <<'END'
version: 0.1
storage: {filesystem: {rootdirectory: /srv/outside/data}}
http: {addr: ":8443", tls: {certificate: /srv/outside/server.crt, key: /srv/outside/server.key}}
auth: {htpasswd: {realm: site, path: /srv/outside/htpasswd}}
END
cat > htpasswd <<'END'
`+users+`END
key() { openssl ecparam -name prime256v1 -genkey -noout -out $1.key; }
key ca; openssl req -x509 -new -key ca.key -days 30 -subj /CN=outside -out ca.crt
key server; openssl req -new -key server.key -subj /CN=server | openssl x509 -req -CA ca.crt -CAkey ca.key -CAcreateserial -days 30 \
  -extfile <(printf 'subjectAltName=DNS:images.site.example\n') -out server.crt 2>/dev/null
systemd-run --unit outside /srv/outside/registry serve /srv/outside/config.yml 2>&1
# A table of its own, which goes again: iptables leaves the tables that it makes.
nft -f - <<'END'
table inet outside {
	chain input {
		type filter hook input priority 0
		ip saddr `+s.workdirAddress()+` tcp dport 8443 reject
	}
}
END`)
	if err := os.MkdirAll(filepath.Join(s.dir, "certs"), 0o700); err != nil {
		t.Fatal(err)
	}
	s.write(t, "certs/ca.crt", s.on(t, "h3", "cat /srv/outside/ca.crt")+"\n")
	s.eventually(t, "h3", "curl -sk https://127.0.0.1:8443/v2/ || bash -c '</dev/tcp/127.0.0.1/8443'")
}

// workdirAddress is where kubexm runs.
func (s *labSite) workdirAddress() string { return strings.TrimSuffix(s.Subnet(), "0/24") + "2" }

// put brings a program to a host.
func (s *labSite) put(t *testing.T, host, from, to string) {
	t.Helper()
	h, err := s.Host(host)
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close()
	cmd := s.SSH(t.Context(), h, lab.RootUser, "cat > "+to+" && chmod 755 "+to)
	cmd.Stdin = program
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s (%v)", out, err)
	}
}

// pulledFromThere asks the nodes and the registry's log who asked for what.
func (s *labSite) pulledFromThere(t *testing.T) {
	t.Helper()
	if got := s.kubectl(t, "-n", "notes", "get", "deployment/notes", "-o", "jsonpath={.status.readyReplicas}"); got != "1" {
		t.Errorf("the add-on has %q pods", got)
	}
	log := s.on(t, "h3", "journalctl -q -o cat -u outside | grep 'containerd' | grep -oE 'GET /v2/[^ ?\"]*|http.request.uri=\"[^\"]*' | sort -u")
	for _, want := range []string{"/v2/kube/one/registry.k8s.io/pause/", "/v2/kube/one/registry.k8s.io/kube-proxy/", "/v2/kube/one/lab.test/labtool/"} {
		if !strings.Contains(log, want) {
			t.Errorf("nobody pulled %s:\n%s", want, log)
		}
	}
	// The index with gaps is there without them, under its tag.
	digests, err := os.ReadFile(filepath.Join(s.dir, ".kubexm", "site", "registry-digests.json"))
	if err != nil || !strings.Contains(string(digests), "kube/one/quay.example/site/tool@sha256:") {
		t.Errorf("%s, %v", digests, err)
	}
	for _, h := range s.Hosts[:2] {
		modes := s.on(t, h.Name, "stat -c '%a %U' /etc/containerd/certs.d/*/hosts.toml | sort -u")
		if modes != "600 root" {
			t.Errorf("%s: hosts.toml with a password: %s", h.Name, modes)
		}
		login := base64.StdEncoding.EncodeToString([]byte("reader:" + pullPassword))
		s.on(t, h.Name, "grep -q '"+login+"' /etc/containerd/certs.d/_default/hosts.toml")
		s.on(t, h.Name, "crictl pull quay.example/site/tool:1.0 && crictl rmi quay.example/site/tool:1.0")
	}
}
