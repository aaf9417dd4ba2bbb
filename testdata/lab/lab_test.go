package lab

import (
	"context"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mensylisir/kubexm/testdata/lab/components"
)

// run gives what a command says, and fails the test when it fails.
func run(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %s (%v)", strings.Join(cmd.Args, " "), out, err)
	}
	return strings.TrimSpace(string(out))
}

func TestLabHosts(t *testing.T) {
	l := Start(t, 2)
	ctx := t.Context()
	h1, h2 := &l.Hosts[0], &l.Hosts[1]
	on := func(h *Host, user, script string) string { return run(t, l.SSH(ctx, h, user, script)) }

	if got := on(h1, RootUser, "hostname; id -un; cat /proc/1/comm"); got != "h1\nroot\nsystemd" {
		t.Errorf("root on h1: %q", got)
	}
	if got := on(h2, SudoUser, "sudo -n id -un"); got != "root" {
		t.Errorf("%s with sudo on h2: %q", SudoUser, got)
	}
	if got := on(h1, RootUser, "getent shadow "+PasswordUser+" | cut -d: -f2 | cut -c1-1"); got != "$" {
		t.Errorf("%s has no password: %q", PasswordUser, got)
	}
	on(h1, RootUser, "ip -4 route get "+h2.Address)
	on(h1, RootUser, "timeout 5 bash -c '</dev/tcp/"+h2.Address+"/22'")

	// What kubexm asks of a host before anything else.
	on(h1, RootUser, "modprobe overlay && modprobe br_netfilter && sysctl -w net.bridge.bridge-nf-call-iptables=1 net.ipv4.ip_forward=1")
	on(h1, RootUser, "! modprobe ip_vs 2>/dev/null") // this kernel has none, and says so
	on(h1, RootUser, "systemctl restart systemd-sysctl systemd-modules-load")
	if got := on(h1, RootUser, "findmnt -no FSTYPE /"); got != "ext4" {
		t.Errorf("the host's disk is %q", got)
	}
}

func TestLabEgressIsSeen(t *testing.T) {
	l := Start(t, 1)
	l.AllowEgress()
	ctx := t.Context()
	isDeadEnd(t, l)

	// 192.0.2.0/24 and 2001:db8::/32 are set aside for documents. Here the gateway
	// has them: what is sent there goes to a host of the lab's, and is for outside all
	// the same.
	gateway := func(args ...string) {
		run(t, exec.CommandContext(ctx, "ip", append([]string{"-n", l.netns("")}, args...)...))
	}
	gateway("link", "set", "lo", "up")
	for _, a := range []string{"192.0.2.1/32", "192.0.2.2/32", "2001:db8::1/128"} {
		gateway("address", "add", a, "dev", "lo", "nodad")
	}
	script := "timeout 1 bash -c '</dev/tcp/192.0.2.1/443'; timeout 1 bash -c '</dev/tcp/2001:db8::1/443'; getent hosts registry.example.com; true"
	run(t, l.SSH(ctx, &l.Hosts[0], RootUser, script))
	_ = l.Workdir().Command(ctx, "timeout", "1", "bash", "-c", "</dev/tcp/192.0.2.2/80").Run() // it fails, as it must

	all, err := l.Egress(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, a := range Left(all) {
		got = append(got, strings.Join([]string{a.Host, a.Protocol, a.Destination.String(), a.Name}, " "))
	}
	for _, want := range []string{
		"h1 tcp 192.0.2.1 ", "h1 tcp 2001:db8::1 ", "h1 dns " + l.Gateway() + " registry.example.com. A", "workdir tcp 192.0.2.2 ",
	} {
		if !slices.Contains(got, want) {
			t.Errorf("%q was not seen; seen were %q", want, got)
		}
	}
}

// isDeadEnd stops the test unless the gateway's namespace has no link but its
// own bridge's, and forwards nothing.
func isDeadEnd(t *testing.T, l *Lab) {
	t.Helper()
	links := run(t, exec.CommandContext(t.Context(), "ip", "-n", l.netns(""), "-br", "link"))
	want := []string{"br0", "lo", "velse", "vh1", "vwork"}
	var got []string
	for line := range strings.Lines(links) {
		name, _, _ := strings.Cut(strings.Fields(line)[0], "@")
		got = append(got, name)
	}
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Fatalf("the gateway has the links %q, want %q", got, want)
	}
	forward := run(t, exec.CommandContext(t.Context(), "ip", "netns", "exec", l.netns(""), "cat",
		"/proc/sys/net/ipv4/ip_forward", "/proc/sys/net/ipv6/conf/all/forwarding"))
	if forward != "0\n0" {
		t.Fatalf("the gateway forwards: %q", forward)
	}
}

func TestLabsSideBySideLeaveNothing(t *testing.T) {
	if err := Possible(); err != nil {
		t.Skip(err)
	}
	free, err := hold(t.Context(), machineLock, &Options{Alone: true, Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(free)
	before := machine(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	var labs []*Lab
	for _, name := range []string{"tside1", "tside2"} {
		l, err := Up(ctx, Options{Name: name, Hosts: 1, held: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Down() }) // where the test ends early
		labs = append(labs, l)
	}
	if labs[0].Subnet() == labs[1].Subnet() {
		t.Errorf("both have %s", labs[0].Subnet())
	}
	if _, err := Up(ctx, Options{Name: "tside1", Hosts: 1, held: true}); err == nil {
		t.Error("a second lab of the same name went up")
	}
	for _, l := range labs {
		if len(l.Leftovers()) == 0 {
			t.Errorf("lab %s is up, and nothing of it was found", l.Name)
		}
		run(t, l.SSH(ctx, &l.Hosts[0], RootUser, "sysctl -w kernel.panic=11; true"))
		if err := l.Down(); err != nil {
			t.Error(err)
		}
		if err := l.Down(); err != nil {
			t.Errorf("down once more: %v", err)
		}
	}
	// The folder of labs stays mounted while a process that ends late is in it.
	cache, err := components.DefaultCache()
	if err != nil {
		t.Fatal(err)
	}
	after := machine(t)
	for end := time.Now().Add(time.Minute); !slices.Equal(before, after) && time.Now().Before(end); after = machine(t) {
		time.Sleep(time.Second)
		if err := detach(cache); err != nil {
			t.Error(err)
		}
	}
	if !slices.Equal(before, after) {
		t.Errorf("before:\n%s\nafter:\n%s", strings.Join(before, "\n"), strings.Join(after, "\n"))
	}
}

// machine lists what of this machine a lab may change. Another lab that is up
// at the same time keeps the settings as labs want them.
func machine(t *testing.T) []string {
	t.Helper()
	list := settings()
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, "kxl-tside") || strings.Contains(line, "/labs/tside") || strings.Contains(line, "/kubexm-lab/labs ") {
			list = append(list, line)
		}
	}
	loops, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range loops {
		if of, err := os.ReadFile(file); err == nil && (strings.Contains(string(of), "/tside") || strings.Contains(string(of), "labs.xfs")) {
			list = append(list, "loop device of "+strings.TrimSpace(string(of)))
		}
	}
	return list
}

func TestLabPowerCut(t *testing.T) {
	l := Start(t, 1)
	ctx := t.Context()
	h := &l.Hosts[0]
	on := func(script string) string { return run(t, l.SSH(ctx, h, RootUser, script)) }
	on("echo kept >/root/kept && sync && ip link add cut0 type bridge")
	was := on("systemd-run --unit lasting sleep 600 2>&1; cat /proc/1/stat | cut -d' ' -f22")
	on("mkdir /root/deleted && for i in $(seq 2000); do echo $i > /root/deleted/$i; done && sync")
	on("echo lost >/root/lost && echo changed >>/etc/hosts && sync /etc/hosts; rm -r /root/deleted")
	if err := l.Cut(h); err != nil {
		t.Fatal(err)
	}
	if err := l.Cut(h); err == nil {
		t.Error("the power was taken twice")
	}
	if err := l.Boot(ctx, h); err != nil {
		t.Fatal(err)
	}
	if got := on("cat /root/kept; tail -1 /etc/hosts; systemctl is-active lasting; ls /sys/class/net"); !strings.HasPrefix(got, "kept\nchanged\ninactive\n") || strings.Contains(got, "cut0") {
		t.Errorf("after a cut: %q", got)
	}
	if got := on("cat /root/lost 2>/dev/null || true"); got != "" {
		t.Errorf("what was never written to the disk is there: %q", got)
	}
	// A deletion that was lost is as if it had never been: its blocks were not given back.
	if got := on("ls /root/deleted | wc -l; cat /root/deleted/1 /root/deleted/2000"); got != "2000\n1\n2000" {
		t.Errorf("a folder that was being deleted has %q", got)
	}
	if on("cat /proc/1/stat | cut -d' ' -f22") == was {
		t.Error("it did not start anew")
	}
}
