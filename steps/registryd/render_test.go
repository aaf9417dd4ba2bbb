package registryd_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/crypto/bcrypt"

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
	config := s.Read("/etc/kubexm/registry/config.yml")
	steptest.Golden(t, *update, "config.yml", config)
	steptest.YAML(t, []byte(config))
	steptest.Golden(t, *update, "kubexm-registry.service", s.Read("/etc/systemd/system/kubexm-registry.service"))

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
	for _, p := range []string{"/etc/kubexm/registry/tls.key", "/etc/kubexm/registry/htpasswd"} {
		if f, _ := s.File(p); f.Mode != 0o600 {
			t.Errorf("%s has mode %v", p, f.Mode)
		}
	}

	// Two users, each with a password of its own that answers to its hash.
	users := map[string]string{}
	for line := range strings.Lines(s.Read("/etc/kubexm/registry/htpasswd")) {
		user, hash, _ := strings.Cut(strings.TrimSpace(line), ":")
		users[user] = hash
	}
	if len(users) != 2 {
		t.Fatalf("users %v", users)
	}
	passwords := map[string]bool{}
	for _, user := range []string{registryd.PushUser, registryd.PullUser} {
		p, err := access.Password(user)
		if err != nil {
			t.Fatal(err)
		}
		passwords[p] = true
		if err := bcrypt.CompareHashAndPassword([]byte(users[user]), []byte(p)); err != nil {
			t.Errorf("%s: %v", user, err)
		}
		if cost, _ := bcrypt.Cost([]byte(users[user])); cost > bcrypt.MinCost {
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

func TestPasswordFileIsKeptWhileItAnswers(t *testing.T) {
	kase := steptest.Case{Workdir: t.TempDir()}
	s := kase.Sim(t)
	step := registryd.Install(steptest.Cluster(t, steptest.Small))
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
	push, pull, _ := strings.Cut(first, "\n")
	s.AddFile(file, push+"x\n"+pull, 0o600)
	mended := read()
	if mended == first || !strings.HasSuffix(mended, pull) {
		t.Errorf("a hash that answers was made anew, or one that does not was kept:\n%s", mended)
	}
	s.AddFile(file, first+"intruder:"+strings.SplitN(push, ":", 2)[1]+"\n", 0o600)
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
