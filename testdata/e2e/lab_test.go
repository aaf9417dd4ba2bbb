package e2e

import (
	"cmp"
	"errors"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mensylisir/kubexm/testdata/fair"
	"github.com/mensylisir/kubexm/testdata/lab"
	"github.com/mensylisir/kubexm/testdata/lab/components"
	"github.com/mensylisir/kubexm/testdata/lab/mirror"
)

// labSite is a lab with a bundle for it, and a folder to run kubexm in.
type labSite struct {
	*lab.Lab
	dir, cache string
	folder     string // the folder of another machine, where the next runs are that one's
	config     string // text
	bundle     string // path
	up         *site
	from       lab.Workdir // where kubexm is run; the workdir host, where it is not set
	program    string      // kubexm; the one of all tests, where it is not set
	masters    []string    // hosts
	cluster    string      // its name; site, where it is not set
	lasting    testing.TB  // whose end is the upstream's; who calls serve, where it is not set
	served     string      // the config that the internet has everything for; config.yaml, where it is not set
	blobs      string      // the folder of what was fetched; one in dir, where it is not set
}

// newLabSite brings up four hosts and builds the bundle for testdata/cluster.yaml.
func newLabSite(t *testing.T, with ...lab.Option) *labSite {
	t.Helper()
	l := lab.Start(t, 4, with...)
	l.Inside(netip.MustParsePrefix("10.202.0.0/20")) // of testdata/cluster.yaml
	cache, err := components.DefaultCache()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("testdata/cluster.yaml")
	if err != nil {
		t.Fatal(err)
	}
	s := &labSite{Lab: l, dir: t.TempDir(), cache: cache, config: l.Config(string(text)), masters: []string{"h2"}}
	s.write(t, "config.yaml", s.config)
	if err := os.CopyFS(filepath.Join(s.dir, "greeter"), os.DirFS("testdata/greeter")); err != nil { // the add-on's chart, beside the config
		t.Fatal(err)
	}
	lines, err := mirror.Open(cache).Sources()
	if err != nil {
		t.Fatal(err)
	}
	s.write(t, "lab.list", strings.Join(lines, "\n")+"\n")
	s.serve(t)
	s.bundle = s.build(t, "config.yaml")
	return s
}

func (s *labSite) write(t testing.TB, name, text string) string {
	t.Helper()
	path := filepath.Join(s.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// variant writes the config with one text in it replaced.
func (s *labSite) variant(t testing.TB, name, old, by string) string {
	t.Helper()
	if !strings.Contains(s.config, old) {
		t.Fatalf("the config has no %q", old)
	}
	return s.write(t, name, strings.Replace(s.config, old, by, 1))
}

// serve puts the lab's components where the internet would have them.
func (s *labSite) serve(t testing.TB) {
	t.Helper()
	up, err := lab.NewUpstream(t.Context(), lab.Source{Config: cmp.Or(s.served, filepath.Join(s.dir, "config.yaml")), Root: "../..", Cache: s.cache, Log: t.Output(),
		Files: map[string]string{"https://lab.test/notes.yaml": "testdata/notes.yaml"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := up.Folder(mirror.Host, mirror.Open(s.cache).Files()); err != nil {
		t.Fatal(err)
	}
	l := listen(t)
	serve(cmp.Or(s.lasting, t), l, up.Run)
	s.up = &site{dir: s.dir}
	if s.up.paths, err = up.WriteFiles(s.dir, "http://"+l.Addr().String()); err != nil {
		t.Fatal(err)
	}
}

// build makes the bundle of a config in the site's folder, by the kubexm that people
// get: under the race detector it takes three times as long.
func (s *labSite) build(t testing.TB, config string) string {
	t.Helper()
	out := filepath.Join(s.dir, strings.TrimSuffix(config, ".yaml")+".tar.zst")
	s.up.must(t, "bundle", "build", "-f", filepath.Join(s.dir, config), "--sources", s.up.paths.Sources, "--versions", s.up.paths.Versions,
		"--lock", out+".lock", "--cache-dir", s.fetched(), out)
	return out
}

func (s *labSite) fetched() string { return cmp.Or(s.blobs, filepath.Join(s.dir, "cache")) }

// kubexm runs it on the workdir host, which has no way out.
func (s *labSite) kubexm(t testing.TB, args ...string) result {
	t.Helper()
	began := time.Now()
	args = append(args, "--workdir", cmp.Or(s.folder, s.dir))
	cmd := s.host().Command(t.Context(), theProgram(t, s.program), args...)
	cmd.Env = append(os.Environ(), "HOME="+s.dir, "SITE_PASSWORD="+lab.Password)
	var out, said strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &said
	err := cmd.Run()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		t.Fatal(err)
	}
	r := result{code: cmd.ProcessState.ExitCode(), stdout: out.String(), stderr: said.String(), took: time.Since(began)}
	t.Logf("kubexm %s: exit %d in %s\n%s%s", strings.Join(args, " "), r.code, r.took.Round(100*time.Millisecond), r.stdout, r.stderr)
	s.showsNoPassword(t, r)
	return r
}

// showsNoPassword looks for the one that hosts take, which is also in the paths of labs.
func (s *labSite) showsNoPassword(t testing.TB, r result) {
	t.Helper()
	if strings.Contains(strings.ReplaceAll(r.stdout+r.stderr, s.cache, ""), lab.Password) {
		t.Error("a password was shown")
	}
}

func (s *labSite) install(t testing.TB, config string) result {
	t.Helper()
	return s.kubexm(t, "install", "--bundle", s.bundle, "--allow-unsigned", "-f", config)
}

// on runs a script on a host as root.
func (s *labSite) on(t testing.TB, host, script string) string {
	t.Helper()
	h, err := s.Host(host)
	if err != nil {
		t.Fatal(err)
	}
	out, err := s.SSH(t.Context(), h, lab.RootUser, script).CombinedOutput()
	if err != nil {
		t.Fatalf("%s on %s: %s (%v)", script, host, out, err)
	}
	return strings.TrimSpace(string(out))
}

// kubectl asks the cluster from the workdir host.
func (s *labSite) kubectl(t testing.TB, args ...string) string {
	t.Helper()
	out, err := s.tryKubectl(t, args...)
	if err != nil {
		t.Fatalf("kubectl %s: %s (%v)", strings.Join(args, " "), out, err)
	}
	return out
}

func (s *labSite) tryKubectl(t testing.TB, args ...string) (string, error) {
	t.Helper()
	rows, err := components.Table("")
	if err != nil {
		t.Fatal(err)
	}
	c, err := components.Find(rows, components.Kubernetes)
	if err != nil {
		t.Fatal(err)
	}
	args = append([]string{"--kubeconfig", s.kubeconfig(), "--request-timeout=20s"}, args...)
	out, err := s.Workdir().Command(t.Context(), filepath.Join(c.Dir(s.cache), "kubectl"), args...).CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

func (s *labSite) kubeconfig() string {
	return filepath.Join(s.dir, ".kubexm", cmp.Or(s.cluster, "site"), "kubeconfig")
}

// smoke has pods on all workers reach each other.
func (s *labSite) smoke(t testing.TB) {
	t.Helper()
	smoke := lab.Smoke{Lab: s.Lab, Cache: s.cache, Kubeconfig: s.kubeconfig(), Say: func(what string) { t.Log(what) }}
	if err := smoke.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// refused runs into what stops an install before anything was changed.
func (s *labSite) refused(t testing.TB) {
	t.Helper()
	// A bundle that lacks one image and one file: nobody is called.
	before := s.logins(t)
	whole := s.bundle
	s.bundle = s.build(t, filepath.Base(s.variant(t, "nonet.yaml", "plugin: flannel", "plugin: none")))
	r := s.install(t, filepath.Join(s.dir, "config.yaml"))
	said(t, r, 4, "error: the bundle lacks", "flannel", "network.install-flannel on h2", "try   build the bundle from this config")
	s.bundle = whole
	if after := s.logins(t); !slices.Equal(after, before) {
		t.Errorf("hosts were called: %d times, before %d", after, before)
	}

	// A host that nobody knows, and a wrong password.
	strict := s.variant(t, "strict.yaml", "hostKeyPolicy: accept-new", "hostKeyPolicy: strict")
	r = s.install(t, strict)
	said(t, r, 3, "host key of "+s.Hosts[0].Address, "host key of "+s.Hosts[3].Address, "connectivity", "known_hosts", "ssh-keygen")
	wrong := s.variant(t, "wrong.yaml", `password: "${env:SITE_PASSWORD}"`, "password: not-the-one")
	r = s.install(t, wrong)
	said(t, r, 3, "log in to "+s.Hosts[2].Address, "admin", "connectivity", "check user, password")
	if strings.Contains(r.stdout+r.stderr, "not-the-one") {
		t.Error("a password was shown")
	}

	// A port of the master that something else listens on.
	s.on(t, "h2", "systemd-run --unit taken systemd-socket-activate --accept -l 6443 /bin/cat")
	r = s.install(t, filepath.Join(s.dir, "config.yaml"))
	said(t, r, 3, "h2", "6443", "systemd-socket-", "stop it; ss -tlnp") // the kernel keeps 15 letters of a name
	s.on(t, "h2", "systemctl stop taken")
	for _, h := range s.Hosts {
		s.on(t, h.Name, "! test -e /etc/containerd && ! test -e /var/lib/kubexm && ! grep -q kubexm /etc/hosts")
	}
}

// logins counts who has come in by ssh on each host, or tried to, the lab itself left
// out: kubexm, wherever it ran.
func (s *labSite) logins(t testing.TB) []int {
	t.Helper()
	script := "journalctl -q -o cat -t sshd | grep -vF ' " + s.Asker() + " ' | grep -cE '^(Accepted|Failed|Connection closed)' || true"
	var all []int
	for _, h := range s.Hosts {
		n, err := strconv.Atoi(s.on(t, h.Name, script))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, n)
	}
	return all
}

// failsAtAWorker breaks the kubelet of one worker, and mends it.
func (s *labSite) failsAtAWorker(t testing.TB, config, worker string) {
	t.Helper()
	const dropIn = "/etc/systemd/system/kubelet.service.d/99-site.conf"
	s.on(t, worker, "mkdir -p "+filepath.Dir(dropIn)+" && printf '[Service]\nExecStartPre=/bin/false\n' > "+dropIn+" && systemctl daemon-reload")
	clock := fair.Start()
	r := s.install(t, config)
	said(t, r, 1, "kubeadm.join-worker", worker+" ("+s.address(t, worker)+")", "the kubelet does not run: ", "try ", "journalctl -u kubelet", "log ")
	clock.Limit(t, r.took, 6*time.Minute) // to see that a kubelet cannot start
	s.on(t, worker, "rm "+dropIn+" && systemctl daemon-reload")
}

func (s *labSite) address(t testing.TB, host string) string {
	t.Helper()
	h, err := s.Host(host)
	if err != nil {
		t.Fatal(err)
	}
	return h.Address
}

// deleted takes the cluster away, from a machine that has the bundle and the config
// alone, and looks at what it leaves.
func (s *labSite) deleted(t testing.TB, config string) {
	t.Helper()
	s.folder = t.TempDir()
	said(t, s.kubexm(t, "delete", "cluster", "--bundle", s.bundle, "--allow-unsigned", "-f", config, "--yes"), 0, "delete of cluster site: done")
	if _, err := os.Stat(filepath.Join(s.folder, ".kubexm", "site", "certs", "registry")); err == nil {
		t.Error("a deletion made keys")
	}
	s.folder = ""
	s.nothingLeft(t)
}

// nothingLeft looks at what a deletion leaves.
func (s *labSite) nothingLeft(t testing.TB) {
	t.Helper()
	for _, h := range s.Hosts {
		left := s.on(t, h.Name, `for p in /etc/kubernetes /var/log/kubernetes /etc/etcd /var/lib/kubelet /var/lib/etcd /srv/etcd /etc/cni/net.d /opt/cni /etc/containerd \
/var/lib/containerd /srv/images /root/.kube /usr/local/bin/etcd /usr/local/bin/etcdctl /usr/local/bin/etcdutl /usr/local/bin/kubeadm /usr/local/bin/kubelet \
/usr/local/bin/containerd /usr/bin/kubelet /etc/systemd/system/kubelet.service /etc/systemd/system/containerd.service /etc/systemd/system/etcd.service \
/etc/systemd/system/multi-user.target.wants/etcd.service /var/lib/kubexm /run/flannel; do ! test -e $p || echo $p; done
grep -si kubexm /etc/hosts /etc/sysctl.d/* /etc/modules-load.d/* || true
systemctl list-units --all --no-legend 'etcd*' 'kubelet*' 'kubexm*' || true
ip -br link | grep -E 'cni|flannel|veth' || true
iptables-save 2>/dev/null | grep -c KUBE- | grep -v '^0$' || true
ps -eo comm= | grep -E 'kube|etcd|containerd|flannel|registry' || true`)
		if left != "" {
			t.Errorf("%s still has:\n%s", h.Name, left)
		}
	}
}
