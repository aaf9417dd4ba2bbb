package registryd_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/crypto/bcrypt"

	"github.com/mensylisir/kubexm/steps/connector/conntest"
	"github.com/mensylisir/kubexm/steps/registryd"
	"github.com/mensylisir/kubexm/steps/steptest"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

func TestWhatTheRegistryHostGets(t *testing.T) {
	c := steptest.Cluster(t, steptest.Small)
	c.Spec.Registry.PrivateRegistry = "registry.site.example:5000"
	kase := steptest.Case{Cluster: c, Workdir: t.TempDir()}
	s := kase.Sim(t)
	step := registryd.Install(c)
	h := kase.NewHost(t, s, step)
	if err := step.Run(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	for golden, at := range map[string]string{"config.yml": "/etc/kubexm/registry/config.yml", "push.yml": "/etc/kubexm/registry/push.yml",
		"kubexm-registry.service": "/etc/systemd/system/kubexm-registry.service", "kubexm-registry-push.service": "/etc/systemd/system/kubexm-registry-push.service"} {
		steptest.Golden(t, *update, golden, s.Read(at))
		if strings.HasSuffix(golden, ".yml") {
			steptest.YAML(t, []byte(s.Read(at)))
		}
	}

	// The certificate is for the name that images carry and the addresses of the
	// host, from a CA that the nodes get, and the key is its own.
	access := registryd.AccessOf(h)
	pair, err := tls.X509KeyPair([]byte(s.Read("/etc/kubexm/registry/tls.crt")), []byte(s.Read("/etc/kubexm/registry/tls.key")))
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	ca, err := access.CA(leaf.NotBefore)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	for _, name := range []string{"registry.site.example", "node1", "192.0.2.11"} {
		if _, err := leaf.Verify(x509.VerifyOptions{Roots: pool, DNSName: name}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	// What the service reads is its group's, and what only kubexm needs is root's.
	for p, mode := range map[string]fs.FileMode{"tls.key": 0o640, "htpasswd": 0o640, "push.htpasswd": 0o640, "ca.key": 0o600, "kubexm-push.password": 0o600, "kubexm-pull.password": 0o600} {
		if f, _ := s.File("/etc/kubexm/registry/" + p); f.Mode != mode || f.UID != 0 || (f.GID != 0) != (mode == 0o640) {
			t.Errorf("%s has mode %v, of %d:%d", p, f.Mode, f.UID, f.GID)
		}
	}
	if f, _ := s.File(c.Spec.Registry.RegistryDataDir); f.UID == 0 || f.Mode.Perm() != 0o700 {
		t.Errorf("the store is of user %d with mode %v", f.UID, f.Mode)
	}

	// Each service knows one user, with a password of its own that answers to its hash.
	passwords := map[string]bool{}
	for user, file := range map[string]string{registryd.PushUser: "push.htpasswd", registryd.PullUser: "htpasswd"} {
		text := s.Read("/etc/kubexm/registry/" + file)
		hash, ok := strings.CutPrefix(strings.TrimSpace(text), user+":")
		if !ok || strings.Count(text, "\n") != 1 {
			t.Fatalf("%s:\n%s", file, text)
		}
		p, err := access.Password(user)
		if err != nil {
			t.Fatal(err)
		}
		passwords[p] = true
		if err := bcrypt.CompareHashAndPassword([]byte(hash), []byte(p)); err != nil {
			t.Errorf("%s: %v", user, err)
		}
		if cost, _ := bcrypt.Cost([]byte(hash)); cost > bcrypt.MinCost {
			t.Errorf("%s: cost %d, for each of hundreds of requests", user, cost)
		}
		if raw, err := base64.RawURLEncoding.DecodeString(p); err != nil || len(raw) < 24 {
			t.Errorf("%s: a password of %d bytes that this cost is too low for (%v)", user, len(raw), err)
		}
	}
	if len(passwords) != 2 {
		t.Error("who pulls has the password of who pushes")
	}
}

// TestUnitsOfTheRegistry: paths are one word of a unit, and a systemd that cannot
// give a port below 1024 to a user runs the registry as root.
func TestUnitsOfTheRegistry(t *testing.T) {
	for name, k := range map[string]struct {
		registry, release string
		push, pull        []string // lines of each unit; with a minus those that are not there
	}{
		"https": {"{}", "ID=debian\nVERSION_ID=12\n",
			[]string{"User=kubexm-registry", `ReadWritePaths="/mnt/registry"`, `ExecStartPre=+/bin/chown -Rh kubexm-registry:kubexm-registry "/mnt/registry"`, "-After=network-online.target kubexm"},
			[]string{"User=kubexm-registry", "-ReadWritePaths", "-ExecStartPre", "After=network-online.target kubexm-registry-push.service", "ProtectSystem=strict"}},
		"a folder of odd name": {`{registryDataDir: '/data/a b%c"d'}`, "ID=debian\nVERSION_ID=12\n", []string{`ReadWritePaths="/data/a b%%c\"d"`}, nil},
		"an old systemd":       {"{}", "ID=centos\nVERSION_ID=7\n", []string{"-User=", "-ExecStartPre"}, []string{"-User=", "CAP_DAC_OVERRIDE"}},
		"and a high port":      {"{privateRegistry: 'r.example:5001'}", "ID=rhel\nVERSION_ID=7.9\n", []string{"User=kubexm-registry"}, []string{"User=kubexm-registry", "-CAP_DAC_OVERRIDE"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := steptest.Cluster(t, steptest.Small+"  registry: "+k.registry+"\n")
			kase := steptest.Case{Cluster: c, Workdir: t.TempDir()}
			s := kase.Sim(t)
			s.SetMachine(func(m *conntest.Machine) { m.OSRelease = k.release })
			step := registryd.Install(c)
			if err := step.Run(t.Context(), kase.NewHost(t, s, step)); err != nil {
				t.Fatal(err)
			}
			for unit, lines := range map[string][]string{"kubexm-registry-push": k.push, "kubexm-registry": k.pull} {
				text := s.Read("/etc/systemd/system/" + unit + ".service")
				for _, line := range lines {
					absent := strings.HasPrefix(line, "-")
					if strings.Contains(text, strings.TrimPrefix(line, "-")) == absent {
						t.Errorf("%s: %s\n%s", unit, line, text)
					}
				}
			}
		})
	}
}

func TestPasswordIsMadeOnce(t *testing.T) {
	a := registryd.Access{Dir: filepath.Join(t.TempDir(), "certs", "registry")}
	first, err := a.Password("somebody")
	if err != nil {
		t.Fatal(err)
	}
	if again, err := a.Password("somebody"); err != nil || again != first {
		t.Errorf("another one: %v", err)
	}
	if len(first) < 32 || strings.ContainsAny(first, ":\n ") {
		t.Errorf("%d characters, or some that no password file takes", len(first))
	}
	st, err := os.Stat(filepath.Join(a.Dir, "somebody.password"))
	if err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", st.Mode(), err)
	}
	if st, err = os.Stat(a.Dir); err != nil || st.Mode().Perm() != 0o700 {
		t.Errorf("%v %v", st.Mode(), err)
	}
	// What a crash left of it is no password.
	if err := os.WriteFile(filepath.Join(a.Dir, "empty.password"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if p, err := a.Password("empty"); err != nil || p == "" {
		t.Errorf("an empty password: %q %v", p, err)
	}
}

func TestPasswordFileIsReusedIfItMatches(t *testing.T) {
	kase := steptest.Case{Workdir: t.TempDir()}
	s := kase.Sim(t)
	step := registryd.Install(steptest.Cluster(t, steptest.Small+"  registry: {privateRegistry: r.example, auths: {r.example: {username: anna, password: hers}}}\n"))
	const file = "/etc/kubexm/registry/htpasswd"
	read := func() string {
		t.Helper()
		if err := step.Run(t.Context(), kase.NewHost(t, s, step)); err != nil {
			t.Fatal(err)
		}
		return s.Read(file)
	}
	first := read()
	if again := read(); again != first {
		t.Error("the hashes changed with no need")
	}
	nodes, anna, _ := strings.Cut(first, "\n")
	s.AddFile(file, nodes+"x\n"+anna, 0o600)
	mended := read()
	if mended == first || !strings.HasSuffix(mended, anna) {
		t.Errorf("a hash that answers was made anew, or one that does not was kept:\n%s", mended)
	}
	s.AddFile(file, first+"intruder:"+strings.SplitN(nodes, ":", 2)[1]+"\n", 0o600)
	if got := read(); strings.Contains(got, "intruder") {
		t.Error("a user that nobody asked for stayed")
	}
}

// TestPasswordIsOneForAll is what the steps of many nodes do at the same time.
func TestPasswordIsOneForAll(t *testing.T) {
	a := registryd.Access{Dir: filepath.Join(t.TempDir(), "registry")}
	got := make(chan string, 16)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			p, err := a.Password(registryd.PullUser)
			if err != nil {
				t.Error(err)
			}
			got <- p
		})
	}
	wg.Wait()
	close(got)
	first := <-got
	for p := range got {
		if p != first || p == "" {
			t.Errorf("one got %q, another %q", first, p)
		}
	}
}
