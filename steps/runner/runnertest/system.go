package runnertest

import (
	"bytes"
	"errors"
	"io/fs"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/runner"
)

func sysctl(_ *testing.T, b *bench) {
	_, err := b.r.Sysctl(b.ctx, "net.ipv4.no_such_key")
	b.is(err, fs.ErrNotExist)
	v, err := b.r.Sysctl(b.ctx, "net.ipv4.ip_local_port_range")
	b.ok(err)
	if len(strings.Fields(v)) != 2 || strings.ContainsAny(v, "\t\n") {
		b.Fatalf("port range is %q", v)
	}
	for _, bad := range []string{"", "a;b", "../etc/passwd", "net..ipv4", "-w", "net.ipv4.ip forward"} {
		if _, err := b.r.Sysctl(b.ctx, bad); err == nil || errors.Is(err, fs.ErrNotExist) {
			b.Fatalf("key %q was not refused: %v", bad, err)
		}
	}
	if b.Sim == nil && !b.Systemd {
		return // the settings are this machine's
	}
	b.is(b.r.SetSysctl(b.ctx, "net.ipv4.no_such_key", "1"), fs.ErrNotExist)
	before, err := b.r.Sysctl(b.ctx, "net.ipv4.ip_forward")
	b.ok(err)
	other := map[string]string{"0": "1", "1": "0"}[before]
	b.ok(b.r.SetSysctl(b.ctx, "net.ipv4.ip_forward", other))
	v, err = b.r.Sysctl(b.ctx, "net.ipv4.ip_forward")
	b.ok(err)
	if v != other {
		b.Fatalf("ip_forward is %q, set was %q", v, other)
	}
	b.ok(b.r.SetSysctl(b.ctx, "net.ipv4.ip_forward", before))
}

func module(_ *testing.T, b *bench) {
	st, err := b.r.Module(b.ctx, "no-such-module")
	b.ok(err)
	if st != runner.ModuleAbsent || st.Ready() {
		b.Fatalf("no-such-module is %s", st)
	}
	if _, err := b.r.Module(b.ctx, "a b"); err == nil {
		b.Fatal("the name \"a b\" was not refused")
	}
	if b.Sim == nil {
		return
	}
	b.refused(b.r.Modprobe(b.ctx, "no-such-module"))
	_, err = b.r.Sysctl(b.ctx, "net.bridge.bridge-nf-call-iptables")
	b.is(err, fs.ErrNotExist)
	b.ok(b.r.Modprobe(b.ctx, "br-netfilter"))
	st, err = b.r.Module(b.ctx, "br_netfilter")
	b.ok(err)
	if st != runner.ModuleLoaded {
		b.Fatalf("br_netfilter is %s after it was loaded", st)
	}
	_, err = b.r.Sysctl(b.ctx, "net.bridge.bridge-nf-call-iptables")
	b.ok(err)
	b.ok(b.r.ModuleUnload(b.ctx, "br_netfilter"))
	st, err = b.r.Module(b.ctx, "br_netfilter")
	b.ok(err)
	if st != runner.ModuleAvailable {
		b.Fatalf("br_netfilter is %s after it was unloaded", st)
	}
}

func users(_ *testing.T, b *bench) {
	u, err := b.r.User(b.ctx, "root")
	b.ok(err)
	if u.UID != 0 || u.GID != 0 || u.Home != "/root" || !slices.Contains(u.Groups, "root") {
		b.Fatalf("root is %+v", u)
	}
	_, err = b.r.User(b.ctx, "no-such-user")
	b.is(err, fs.ErrNotExist)
	_, err = b.r.Group(b.ctx, "no-such-group")
	b.is(err, fs.ErrNotExist)
	gid, err := b.r.Group(b.ctx, "root")
	b.ok(err)
	if gid != 0 {
		b.Fatalf("group root has number %d", gid)
	}
	b.ok(b.r.RemoveUser(b.ctx, "no-such-user"))
	b.ok(b.r.RemoveGroup(b.ctx, "no-such-group"))
	for _, bad := range []string{"", "-x", "a b", "a:b", "A", strings.Repeat("x", 40)} {
		if _, err := b.r.User(b.ctx, bad); err == nil || errors.Is(err, fs.ErrNotExist) {
			b.Fatalf("user %q was not refused", bad)
		}
	}
	made, err := b.r.EnsureUser(b.ctx, runner.NewUser{Name: "root"})
	b.ok(err)
	if made {
		b.Fatal("root was made anew")
	}
	if b.Sim == nil && !b.Systemd {
		return // the users are this machine's
	}
	made, err = b.r.EnsureGroup(b.ctx, "kxmgroup", 0, true)
	b.ok(err)
	again, err := b.r.EnsureGroup(b.ctx, "kxmgroup", 0, true)
	b.ok(err)
	if !made || again {
		b.Fatalf("group made %t, again %t", made, again)
	}
	want := runner.NewUser{Name: "kxmuser", Group: "kxmgroup", Groups: []string{"adm"}, Home: "/home/kxmuser", System: true}
	made, err = b.r.EnsureUser(b.ctx, want)
	b.ok(err)
	again, err = b.r.EnsureUser(b.ctx, want)
	b.ok(err)
	if !made || again {
		b.Fatalf("user made %t, again %t", made, again)
	}
	u, err = b.r.User(b.ctx, "kxmuser")
	b.ok(err)
	if u.UID == 0 || u.Home != "/home/kxmuser" || u.Shell != "/sbin/nologin" || !slices.Equal(u.Groups, []string{"adm", "kxmgroup"}) {
		b.Fatalf("user is %+v", u)
	}
	b.ok(b.r.WriteFile(b.ctx, b.path("theirs"), nil, runner.Attr{Owner: "kxmuser", Group: "kxmgroup"}))
	b.has(b.path("theirs"), runner.Attr{Owner: "kxmuser", Group: "kxmgroup"})
	b.ok(b.r.RemoveUser(b.ctx, "kxmuser"))
	b.ok(b.r.RemoveGroup(b.ctx, "kxmgroup"))
	_, err = b.r.User(b.ctx, "kxmuser")
	b.is(err, fs.ErrNotExist)
	b.ok(b.r.RemoveAll(b.ctx, "/home/kxmuser"))
}

func facts(_ *testing.T, b *bench) {
	f, err := b.r.Facts(b.ctx)
	b.ok(err)
	switch {
	case f.OS.ID == "" || f.OS.Pretty == "":
		b.Fatalf("no distribution: %+v", f.OS)
	case f.Arch != "amd64" && f.Arch != "arm64":
		b.Fatalf("architecture is %q", f.Arch)
	case f.Kernel == "" || f.Hostname == "" || f.BootID == "" || f.Init == "":
		b.Fatalf("something is missing: %+v", f)
	case f.CPUs < 1 || f.Memory < 64<<20 || f.Available > f.Memory:
		b.Fatalf("%d CPUs, %d bytes of memory, %d available", f.CPUs, f.Memory, f.Available)
	case f.ClockOffset.Abs() > time.Minute || f.Time.IsZero() || f.TimeZone == "":
		b.Fatalf("clock is off by %s, time %s %s", f.ClockOffset, f.Time, f.TimeZone)
	case f.Platform().OS != "linux" || f.Platform().Arch != f.Arch:
		b.Fatalf("platform is %+v", f.Platform())
	}
	if d, ok := f.Disk(b.Dir); !ok || d.Size < d.Free || d.Size == 0 {
		b.Fatalf("disk of %s is %+v", b.Dir, d)
	}
	i, ok := f.InterfaceOf(netip.MustParseAddr("127.0.0.1"))
	if !ok || i.Name != "lo" || i.MTU == 0 || !i.Up {
		b.Fatalf("the loopback interface is %+v", i)
	}
	name, err := b.r.Hostname(b.ctx)
	b.ok(err)
	if name != f.Hostname {
		b.Fatalf("host name is %q, facts say %q", name, f.Hostname)
	}
}

func machine(_ *testing.T, b *bench) {
	if b.Sim != nil {
		b.Sim.AddFile("/usr/bin/sh", "", 0o755)
	}
	p, err := b.r.FindProgram(b.ctx, "sh")
	b.ok(err)
	if !strings.HasSuffix(p, "/sh") {
		b.Fatalf("sh is %q", p)
	}
	_, err = b.r.FindProgram(b.ctx, "no-such-program")
	b.is(err, fs.ErrNotExist)
	id, err := b.r.BootID(b.ctx)
	b.ok(err)
	if len(id) != 36 {
		b.Fatalf("boot id is %q", id)
	}
	for _, bad := range []string{"", "-x", "a b", "x;y", strings.Repeat("x", 65)} {
		if err := b.r.SetHostname(b.ctx, bad); err == nil {
			b.Fatalf("host name %q was not refused", bad)
		}
	}
}

// packages queries a host of the Debian family, all of which have base-files.
func packages(t *testing.T, b *bench) {
	if b.Sim != nil {
		b.Sim.AddFile("/usr/bin/dpkg-query", "", 0o755)
		b.Sim.AddPackage("base-files", "12")
	}
	if _, err := b.r.FindProgram(b.ctx, "dpkg-query"); err != nil {
		t.Skip("no dpkg-query there")
	}
	found, err := b.r.Packages(b.ctx, "deb", "no-such-package")
	b.ok(err)
	p, ok := found.Find("base-files")
	if !ok || p.Version == "" || p.Arch == "" || p.State != runner.StateInstalled || !found.Has("base-files") || found.Has("no-such-package") || len(found.Provided) > 0 || found.Native == "" {
		b.Fatalf("packages are %+v", found)
	}
	if free, kept, err := b.r.FreePackages(b.ctx, "deb", nil); err != nil || free != nil || kept != nil {
		b.Fatalf("of none, %q and %q: %v", free, kept, err)
	}
	for _, bad := range [][]string{{"-rf"}, {"a b"}} {
		if _, err := b.r.Packages(b.ctx, "deb", bad...); err == nil {
			b.Fatalf("%q was not refused", bad)
		}
	}
}

const suiteUnit = `[Unit]
Description=kubexm suite

[Service]
ExecStart=/bin/sh -c 'while :; do sleep 1; done'

[Install]
WantedBy=multi-user.target
`

func units(_ *testing.T, b *bench) {
	for _, bad := range []string{"", "x", "a b.service", "-x.service", "x.service; reboot"} {
		if _, err := b.r.Unit(b.ctx, bad); err == nil {
			b.Fatalf("unit %q was not refused", bad)
		}
	}
	if b.Sim == nil && !b.Systemd {
		return
	}
	const name, file = "kubexm-suite.service", "/etc/systemd/system/kubexm-suite.service"
	state := func(found, active, enabled bool) runner.Unit {
		b.Helper()
		u, err := b.r.Unit(b.ctx, name)
		b.ok(err)
		if u.Found() != found || u.IsActive() != active || u.IsEnabled() != enabled {
			b.Fatalf("unit is %+v; want found %t, active %t, enabled %t", u, found, active, enabled)
		}
		return u
	}
	state(false, false, false)
	b.refused(b.r.UnitStart(b.ctx, name))
	b.refused(b.r.UnitEnable(b.ctx, name))
	b.ok(b.r.WriteFile(b.ctx, file, []byte(suiteUnit), runner.Attr{}))
	b.ok(b.r.DaemonReload(b.ctx))
	state(true, false, false)
	b.ok(b.r.UnitEnable(b.ctx, name))
	state(true, false, true)
	b.ok(b.r.UnitStart(b.ctx, name))
	b.ok(b.r.UnitStart(b.ctx, name))
	u := state(true, true, true)
	if u.MainPID == 0 || u.Path != file {
		b.Fatalf("running unit is %+v", u)
	}
	b.ok(b.r.WriteFile(b.ctx, file, []byte(suiteUnit+"# changed\n"), runner.Attr{}))
	if !state(true, true, true).NeedsReload {
		b.Fatal("a changed file asks for no reload")
	}
	b.ok(b.r.DaemonReload(b.ctx))
	if state(true, true, true).NeedsReload {
		b.Fatal("after the reload it is still asked for")
	}
	b.ok(b.r.UnitRestart(b.ctx, name))
	b.ok(b.r.UnitDisable(b.ctx, name))
	state(true, true, false)
	b.ok(b.r.UnitStop(b.ctx, name))
	state(true, false, false)
	b.ok(b.r.Remove(b.ctx, file))
	b.ok(b.r.UnitMask(b.ctx, name))
	if state(true, false, false).Load != "masked" {
		b.Fatal("the unit is not masked")
	}
	b.refused(b.r.UnitStart(b.ctx, name))
	b.ok(b.r.UnitUnmask(b.ctx, name))
	b.ok(b.r.DaemonReload(b.ctx))
	b.ok(b.r.UnitResetFailed(b.ctx, name))
	state(false, false, false)
	_, err := b.r.Journal(b.ctx, name, 10)
	b.ok(err)
}

func jobs(_ *testing.T, b *bench) {
	if b.Sim == nil && !b.Systemd {
		return
	}
	good := runner.Job{Name: "suite-good", Argv: []string{"/bin/sh", "-c", "echo one; sleep 1; echo $((1 + 1)) two"}, Poll: 20 * time.Millisecond}
	bad := runner.Job{Name: "suite-bad", Argv: []string{"/bin/sh", "-c", "echo complaint >&2; exit 7"}, Poll: 20 * time.Millisecond}
	if b.Sim != nil {
		b.Sim.Script(connector.Result{Stdout: []byte("one\n2 two\n")}, good.Argv...)
		b.Sim.Script(connector.Result{Stderr: []byte("complaint\n"), Exit: 7}, bad.Argv...)
	}
	var output bytes.Buffer
	good.Output = &output
	b.ok(b.r.StartJob(b.ctx, good))
	b.is(b.r.StartJob(b.ctx, good), runner.ErrExists)
	s, err := b.r.Job(b.ctx, good, 0)
	b.ok(err)
	if !s.Exists || !s.Running {
		b.Fatalf("job is %+v", s)
	}
	log, err := b.r.RunJob(b.ctx, good) // finds it and waits
	b.ok(err)
	if string(log) != "one\n2 two\n" || output.String() != "one\n2 two\n" {
		b.Fatalf("log is %q, output %q", log, output.String())
	}
	s, err = b.r.Job(b.ctx, good, 0)
	b.ok(err)
	if s.Exists {
		b.Fatalf("the job is still known: %+v", s)
	}
	_, err = b.r.WaitJob(b.ctx, good)
	b.is(err, fs.ErrNotExist)
	for range 2 { // one that failed can be run again
		_, err = b.r.RunJob(b.ctx, bad)
		var failed *runner.CmdError
		if !errors.As(err, &failed) || failed.Exit != 7 || failed.Error() != "sh: exit 7: complaint" {
			b.Fatalf("error is %v", err)
		}
	}
}
