package installer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/connector/sshtest"
	"github.com/mensylisir/kubexm/steps/steptest"
	"github.com/mensylisir/kubexm/testdata/fair"
)

// host is the entry of a server in a config.
func host(name string, s *sshtest.Server, more string) string {
	return fmt.Sprintf("    - {name: %s, address: %s, port: %d, internalAddress: 198.18.%d.%d, password: \"${env:SSH_PASSWORD}\"%s}\n", name, s.Host, s.Port, s.Port>>8, s.Port&0xff, more)
}

// clusterOf is a config whose first host is its master.
func clusterOf(t *testing.T, hosts ...string) *manifest.Cluster {
	t.Helper()
	return steptest.Cluster(t, "apiVersion: kubexm.mensylisir.io/v1alpha1\nkind: Cluster\nmetadata: {name: demo}\nspec:\n  hosts:\n"+strings.Join(hosts, "")+
		"  roleGroups: {master: [a]}\n  kubernetes: {version: v1.34.10}\n  etcd: {type: kubeadm}\n  network: {plugin: flannel}\n")
}

// options gives a home in which the keys of servers are known.
func options(t *testing.T, c *manifest.Cluster, known ...*sshtest.Server) Options {
	t.Helper()
	home := t.TempDir()
	if err := os.Mkdir(filepath.Join(home, ".ssh"), 0o700); err != nil {
		t.Fatal(err)
	}
	text := ""
	for _, s := range known {
		text += knownhosts.Line([]string{s.Addr}, s.HostKey()) + "\n"
	}
	if err := os.WriteFile(filepath.Join(home, ".ssh", "known_hosts"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return Options{
		Cluster: c, Base: t.TempDir(), Home: home, Parallel: 4, Log: slog.New(slog.DiscardHandler),
		LookupEnv: func(name string) (string, bool) { return "secret", name == "SSH_PASSWORD" },
	}
}

func TestOpenReachesEveryHost(t *testing.T) {
	t.Parallel()
	a, b := sshtest.Start(t, sshtest.Config{Password: "secret"}), sshtest.Start(t, sshtest.Config{Password: "secret"})
	o := options(t, clusterOf(t, host("a", a, ""), host("b", b, "")), a, b)
	s, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range o.Cluster.Spec.Hosts {
		got := s.Host(h)
		if got == nil || got.Facts.Kernel == "" || got.Platform.Arch != "amd64" || got.Workdir != filepath.Join(o.Base, ".kubexm", "demo") {
			t.Errorf("%s: %+v", h.Name, got)
		}
	}
	if a.Connections() != 1 || b.Connections() != 1 {
		t.Errorf("%d and %d connections", a.Connections(), b.Connections())
	}
	// The folder is taken until the end of the run.
	var busy *BusyError
	if _, err := Open(t.Context(), o); !errors.As(err, &busy) {
		t.Errorf("a second run at the same time: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	again, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}

// TestOpenNamesEveryHostThatItCannotReach: each with its reason and with what to do.
func TestOpenNamesEveryHostThatItCannotReach(t *testing.T) {
	t.Parallel()
	good, wrong := sshtest.Start(t, sshtest.Config{Password: "secret"}), sshtest.Start(t, sshtest.Config{Password: "another"})
	stranger, gone := sshtest.Start(t, sshtest.Config{Password: "secret"}), sshtest.Start(t, sshtest.Config{Password: "secret"})
	c := clusterOf(t, host("a", good, ""), host("b", wrong, ""), host("c", stranger, ""), host("d", gone, ""))
	gone.Close()
	o := options(t, c, good, wrong, gone)
	_, err := Open(t.Context(), o)
	var all HostErrors
	if !errors.As(err, &all) || len(all) != 3 {
		t.Fatalf("%v", err)
	}
	var auth *connector.AuthError
	var key *connector.HostKeyError
	var dial *connector.DialError
	for i, want := range []struct {
		as           any
		text, advice string
	}{
		{&auth, "host b (127.0.0.1): log in to", "check user, password"},
		{&key, "is not known: ssh-ed25519 SHA256:", "hostKeyPolicy: accept-new"},
		{&dial, "connection refused", ""},
	} {
		e := all[i]
		if !errors.As(e, want.as) || !strings.Contains(e.Error(), want.text) {
			t.Errorf("%d: %v", i, e)
		}
		if advice := strings.Join(steps.Advice(e), " "); advice == "" || !strings.Contains(advice, want.advice) {
			t.Errorf("%v: advice %q", e, advice)
		}
		if strings.Contains(e.Error(), "secret") {
			t.Errorf("%v: a password is shown", e)
		}
	}
	// What failed holds nothing.
	unlock, err := Workdir{Dir: filepath.Join(o.Base, ".kubexm", "demo")}.Lock(t.Context())
	if err != nil {
		t.Fatalf("the folder is still taken: %v", err)
	}
	unlock()
}

func TestAcceptNewKeepsTheKey(t *testing.T) {
	t.Parallel()
	a := sshtest.Start(t, sshtest.Config{Password: "secret"})
	o := options(t, clusterOf(t, host("a", a, ", hostKeyPolicy: accept-new")))
	for range 2 {
		s, err := Open(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	file := filepath.Join(o.Base, ".kubexm", "demo", "known_hosts")
	text, err := os.ReadFile(file)
	if err != nil || strings.Count(string(text), "\n") != 1 {
		t.Errorf("%q, %v", text, err)
	}
	if st, err := os.Stat(file); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", st, err)
	}
	a.SetHostKeys(sshtest.Key(t, "ed25519"))
	_, err = Open(t.Context(), o)
	var key *connector.HostKeyError
	if !errors.As(err, &key) || len(key.Known) == 0 {
		t.Errorf("another key than the one accepted: %v", err)
	}
}

func TestMissingSecretsAreNamedAllAtOnce(t *testing.T) {
	t.Parallel()
	a, b := sshtest.Start(t, sshtest.Config{Password: "secret"}), sshtest.Start(t, sshtest.Config{Password: "secret"})
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"open": 0o644, "closed": 0o600} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x\n"), mode); err != nil {
			t.Fatal(err)
		}
	}
	c := clusterOf(t, host("a", a, ", sudoPassword: \"${env:SUDO_A}\""),
		host("b", b, ", privateKeyPath: ~/key, passphrase: 'file:"+filepath.Join(dir, "nowhere")+"', jumpHost: {address: 127.0.0.1, password: \"${env:JUMP}\"}"),
		fmt.Sprintf("    - {name: c, address: 127.0.0.3, password: 'file:%s'}\n", filepath.Join(dir, "open")),
		fmt.Sprintf("    - {name: d, address: 127.0.0.4, password: 'file:%s'}\n", filepath.Join(dir, "closed")))
	_, err := Open(t.Context(), options(t, c, a))
	var ps manifest.Problems
	if !errors.As(err, &ps) {
		t.Fatalf("%v", err)
	}
	var paths []string
	for _, p := range ps {
		paths = append(paths, p.Path)
		if p.Advice == "" {
			t.Errorf("%s: no advice", p.Path)
		}
	}
	if got := strings.Join(paths, " "); got != "spec.hosts[0].sudoPassword spec.hosts[1].jumpHost.password spec.hosts[1].passphrase spec.hosts[2].password" {
		t.Errorf("missing: %s", got)
	}
	if n := a.Connections() + b.Connections(); n != 0 {
		t.Errorf("%d connections were made", n)
	}
}

func TestOpenEndsWithItsContext(t *testing.T) {
	t.Parallel()
	a := sshtest.Start(t, sshtest.Config{Password: "secret"})
	a.Silence()
	defer a.Speak()
	o := options(t, clusterOf(t, host("a", a, "")), a)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	clock := fair.Start()
	if _, err := Open(ctx, o); err == nil {
		t.Error("a host that says nothing is open")
	}
	clock.Within(t, 5*time.Second)
}
