package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/packaging/system"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/connector/ssh"
	"github.com/mensylisir/kubexm/steps/node"
	"github.com/mensylisir/kubexm/steps/runner"
	"github.com/mensylisir/kubexm/testdata/lab"
	"github.com/mensylisir/kubexm/testdata/lab/components"
	"github.com/mensylisir/kubexm/testdata/lab/mirror"
)

// wantedPackages are not in the lab's image, but for socat.
var wantedPackages = []string{"conntrack", "ebtables", "ipset", "ipvsadm", "nfs-common", "open-iscsi", "nothing-of-the-kind | bash-completion", "socat"}

// packageBundle is a bundle of packages alone, out of the lab's mirror.
type packageBundle struct {
	steps.Artifacts // nothing else is asked for
	repo            manifest.Artifact
	own             map[string][]byte
	files           string
}

// Open gives what is at an address of the mirror. It is packaging.Web's.
func (s *packageBundle) Open(_ context.Context, address string) (io.ReadCloser, error) {
	return os.Open(filepath.Join(s.files, strings.TrimPrefix(address, "https://"+mirror.Host+"/")))
}

func newPackageBundle(t *testing.T) *packageBundle {
	t.Helper()
	cache, err := components.DefaultCache()
	if err != nil {
		t.Fatal(err)
	}
	m := mirror.Open(cache)
	sources, err := m.Sources()
	if err != nil {
		t.Fatal(err)
	}
	s := &packageBundle{files: m.Files(), own: map[string][]byte{}}
	p := manifest.Platform{OS: "linux", Arch: "amd64", Distribution: "debian", Release: "12"}
	a := manifest.Artifact{
		ID: "packages/debian-12", Kind: manifest.Packages, Name: p.System(), Version: p.Release, Platform: p,
		Packages: &manifest.PackageSet{Format: manifest.Deb, Want: wantedPackages, Sources: sources},
	}
	var notes []string
	if s.repo, notes, err = system.Pin(t.Context(), s, a, system.Options{}); err != nil {
		t.Fatalf("%v %q", err, notes)
	}
	files, err := system.Metadata(s.repo)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		s.own[f.Path] = f.Content
	}
	return s
}

func (s *packageBundle) Repository(n manifest.Need, _ manifest.Platform) (manifest.Artifact, error) {
	if n.Name != s.repo.Name {
		return manifest.Artifact{}, fmt.Errorf("no packages of %s", n.Name)
	}
	return s.repo, nil
}

func (s *packageBundle) File(ctx context.Context, n manifest.Need, _ manifest.Platform) (io.ReadCloser, manifest.Blob, error) {
	_, file, _ := strings.Cut(n.Name, "/")
	i := slices.IndexFunc(s.repo.Members, func(m manifest.Member) bool { return m.Path == file })
	if i < 0 {
		return nil, manifest.Blob{}, fmt.Errorf("no file %s", file)
	}
	m := s.repo.Members[i]
	b := manifest.Blob{Name: m.Name, SHA256: m.SHA256, Size: m.Size}
	if own, ok := s.own[file]; ok {
		return io.NopCloser(bytes.NewReader(own)), b, nil
	}
	f, err := s.Open(ctx, m.Address)
	return f, b, err
}

// packageHost is a host of the lab, in the hands of steps.
type packageHost struct {
	*lab.Lab
	host    *lab.Host
	bundle  *packageBundle
	cluster *manifest.Cluster
	user    string
	verbs   func(runner.CommandRecord) // hears of every command
}

// dial connects as from the lab's workdir host.
func (p *packageHost) dial(ctx context.Context, network, address string) (net.Conn, error) {
	type result struct {
		c   net.Conn
		err error
	}
	ended := make(chan result, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		ns, err := os.Open(filepath.Join("/var/run/netns", p.Workdir().Netns))
		if err != nil {
			ended <- result{nil, err}
			return
		}
		defer ns.Close()
		if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
			ended <- result{nil, err}
			return
		}
		var d net.Dialer
		c, err := d.DialContext(ctx, network, address)
		ended <- result{c, err}
	}()
	r := <-ended
	return r.c, r.err
}

// hands connects anew, as a new run of kubexm does.
func (p *packageHost) hands(t *testing.T) *steps.Host {
	t.Helper()
	key, err := os.ReadFile(p.Key())
	if err != nil {
		t.Fatal(err)
	}
	c := ssh.Config{Address: p.host.Address, User: p.user, KnownHosts: []string{p.KnownHosts()}, Dial: p.dial, Key: key}
	if p.user == "admin" {
		c.Key, c.Password = nil, lab.Password
	}
	conn := ssh.New(c)
	t.Cleanup(func() { conn.Close() })
	r := runner.New(conn, runner.Options{Observe: p.verbs})
	facts, err := r.Facts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return &steps.Host{
		Host: manifest.Host{Name: p.host.Name, Arch: "amd64"}, Runner: r, Cluster: p.cluster, Facts: facts, Artifacts: p.bundle,
		Platform: manifest.Platform{OS: "linux", Arch: "amd64"}, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	}
}

func (p *packageHost) run(t *testing.T, s steps.Step) error {
	t.Helper()
	began := time.Now()
	err := s.Run(t.Context(), p.hands(t).WithBoard(&steps.Board{}).ForStep(s.Meta()))
	t.Logf("%s on %s as %s: %s, %v", s.Meta().Name, p.host.Name, p.user, time.Since(began).Round(100*time.Millisecond), err)
	return err
}

// done reports whether there is nothing to do for a step.
func (p *packageHost) done(t *testing.T, s steps.Step) bool {
	t.Helper()
	v, err := s.Precheck(t.Context(), p.hands(t).WithBoard(&steps.Board{}).ForStep(s.Meta()))
	if err != nil {
		t.Fatal(err)
	}
	return v == steps.Done
}

// sh runs a script on the host as root.
func (p *packageHost) sh(t *testing.T, script string) string {
	t.Helper()
	out, err := p.SSH(t.Context(), p.host, lab.RootUser, script).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %s (%v)", script, out, err)
	}
	return string(out)
}

const packageState = `dpkg-query -W -f '${db:Status-Abbrev} ${binary:Package} ${Version}\n'; find /var/lib/apt/lists /var/cache/apt /etc/apt /var/lib/dpkg/updates /var/lib/kubexm /run/kubexm 2>/dev/null | sort; cat /var/lib/apt/extended_states; systemctl --failed --plain --no-legend`

// hold locks dpkg's database for some seconds, as an apt-get of somebody else's does.
const hold = `nohup perl -e 'use Fcntl; open F, ">>", "/var/lib/dpkg/lock-frontend"; $l = pack("s s x4 q q l x4", F_WRLCK, 0, 0, 0, 0); fcntl(F, F_SETLK, $l) or die; $0 = "somebody"; sleep %d' >/dev/null 2>&1 & sleep 1`

// TestPackagesOnHosts installs packages on hosts that have no way out, and takes
// them away again.
func TestPackagesOnHosts(t *testing.T) {
	l := lab.Start(t, 2)
	cluster, problems := manifest.Decode(strings.NewReader(l.Config(`apiVersion: kubexm.mensylisir.io/v1alpha1
kind: Cluster
metadata: {name: site}
spec:
  hosts: [{name: h1, address: 192.0.2.11}]
  ssh: {user: root, privateKeyPath: /key}
  roleGroups: {master: [h1], worker: [h1], registry: [h1]}
  kubernetes: {version: v1.34.10}
  etcd: {type: kubeadm}
  network: {plugin: flannel}
  bundle: {operatingSystems: [{name: debian, releases: ["12"]}]}
`)))
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	s := newPackageBundle(t)
	install, remove := node.InstallPackages(cluster), node.RemovePackages(cluster)
	on := func(i int, user string) *packageHost {
		return &packageHost{Lab: l, host: &l.Hosts[i], bundle: s, cluster: cluster, user: user}
	}

	t.Run("through the connection", func(t *testing.T) {
		t.Parallel()
		p := on(0, "root")
		packagesComeAndGo(t, p, install, remove)
		packagesOfOthersStay(t, p, install, remove)
		brokenPackagesAreReported(t, p, install)
	})
	t.Run("uploaded", func(t *testing.T) {
		t.Parallel()
		p := on(1, "admin") // who types a password for sudo
		p.sh(t, "echo 'AllowTcpForwarding no' >/etc/ssh/sshd_config.d/hardened.conf; systemctl reload ssh")
		packagesComeAndGo(t, p, install, remove)
		killedInstallationIsFinished(t, p, install, remove)
	})
}

// packagesComeAndGo is an installation that waits for somebody else's, and its
// removal weeks later.
func packagesComeAndGo(t *testing.T, p *packageHost, install, remove steps.Step) {
	state := p.sh(t, packageState)
	p.sh(t, fmt.Sprintf(hold, 15))
	began := time.Now()
	if err := p.run(t, install); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took < 10*time.Second {
		t.Errorf("it did not wait for the lock: %s", took)
	}
	if !p.done(t, install) {
		t.Error("there is still something to install")
	}
	p.sh(t, "ipvsadm --version; command -v mount.nfs iscsiadm ipset conntrack socat; test ! -e /var/lib/kubexm/site/packages -a -z \"$(dpkg --audit)\"")
	if err := p.run(t, remove); err != nil {
		t.Fatal(err)
	}
	if !p.done(t, remove) {
		t.Error("there is still something to remove")
	}
	if d := cmp.Diff(strings.Split(state, "\n"), strings.Split(p.sh(t, packageState), "\n")); d != "" {
		t.Errorf("packages are not what they were:\n%s", d)
	}
}

// packagesOfOthersStay: what somebody installed needs one of those that came.
func packagesOfOthersStay(t *testing.T, p *packageHost, install, remove steps.Step) {
	state := p.sh(t, packageState)
	if err := p.run(t, install); err != nil {
		t.Fatal(err)
	}
	p.sh(t, `set -e; d=$(mktemp -d); mkdir "$d/DEBIAN"
printf 'Package: theirs\nVersion: 1\nArchitecture: all\nMaintainer: x <x@example.org>\nDepends: ipset, rpcbind\nDescription: x\n' >"$d/DEBIAN/control"
dpkg-deb -b "$d" /root/theirs.deb; dpkg -i /root/theirs.deb; rm -r "$d" /root/theirs.deb`)
	if err := p.run(t, remove); err != nil {
		t.Fatal(err)
	}
	left := p.sh(t, `dpkg-query -W -f '${db:Status-Abbrev} ${binary:Package} ' theirs ipset rpcbind libipset13 ipvsadm nfs-common 2>/dev/null | sed 's/un  [^ ]* //g' || true`)
	if left != "ii  ipset ii  libipset13:amd64 ii  rpcbind ii  theirs " {
		t.Errorf("left are %q", left)
	}
	if !p.done(t, remove) {
		t.Error("a removal that cannot go on is not done")
	}
	p.sh(t, "dpkg --purge theirs")
	if err := p.run(t, remove); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(strings.Split(state, "\n"), strings.Split(p.sh(t, packageState), "\n")); d != "" {
		t.Errorf("packages are not what they were:\n%s", d)
	}
}

func brokenPackagesAreReported(t *testing.T, p *packageHost, install steps.Step) {
	p.sh(t, `set -e; d=$(mktemp -d); mkdir "$d/DEBIAN"
printf 'Package: halfway\nVersion: 1\nArchitecture: all\nMaintainer: x <x@example.org>\nDescription: x\n' >"$d/DEBIAN/control"
dpkg-deb -b "$d" /root/halfway.deb; dpkg --unpack /root/halfway.deb; rm -r "$d" /root/halfway.deb`)
	err := p.run(t, install)
	if !errors.Is(err, runner.ErrPackagesBroken) || !strings.Contains(err.Error(), "halfway is unpacked") {
		t.Errorf("error is %v", err)
	}
	p.sh(t, "dpkg --purge halfway")
}

// killedInstallationIsFinished: kubexm goes away while the host's own tool is at
// work; the next run waits for that, and has on record what came.
func killedInstallationIsFinished(t *testing.T, p *packageHost, install, remove steps.Step) {
	state := p.sh(t, packageState)
	ctx, kill := context.WithCancel(t.Context())
	p.verbs = func(r runner.CommandRecord) {
		if r.Verb == connector.VerbJobPoll && r.Err == nil {
			if p.SSH(t.Context(), p.host, lab.RootUser, "grep -qs Unpacking /run/kubexm/jobs/packages-site.log").Run() == nil {
				kill()
			}
		}
	}
	if err := install.Run(ctx, p.hands(t).WithBoard(&steps.Board{}).ForStep(install.Meta())); !errors.Is(err, context.Canceled) {
		t.Fatalf("it was not killed: %v", err)
	}
	p.verbs = nil
	if p.done(t, install) {
		t.Error("nothing is left to do, though nobody noted what came")
	}
	if err := p.run(t, install); err != nil {
		t.Fatal(err)
	}
	if !p.done(t, install) {
		t.Error("there is still something to install")
	}
	if err := p.run(t, remove); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(strings.Split(state, "\n"), strings.Split(p.sh(t, packageState), "\n")); d != "" {
		t.Errorf("packages are not what they were:\n%s", d)
	}
}
