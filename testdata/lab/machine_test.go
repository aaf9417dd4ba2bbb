package lab

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// TestHostEmulated starts a machine with a kernel of its own, restarts it in both ways
// there are, and looks at what other hosts do not have.
func TestHostEmulated(t *testing.T) {
	l := Start(t, 1, WithRoots(Machine))
	l.AllowEgress()
	h := &l.Hosts[0]
	on := func(user, script string) string {
		t.Helper()
		out, err := l.SSH(t.Context(), h, user, script).CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %s (%v)", script, out, err)
		}
		return strings.TrimSpace(string(out))
	}
	is := func(script, want string) {
		t.Helper()
		if got := on(RootUser, script); got != want {
			t.Errorf("%s: %q, want %q", script, got, want)
		}
	}
	is("stat -fc %T /sys/fs/cgroup", "cgroup2fs")
	is("hostname", "h1")
	is("modprobe -a ip_vs ip_vs_rr overlay br_netfilter vxlan nf_conntrack iptable_nat && echo all", "all")
	is("ip -br addr show eth0 | grep -c "+h.Address+"/24.*"+h.Address6+"/64", "1")
	if got := on(SudoUser, "sudo id -u"); got != "0" {
		t.Errorf("%s is %s by sudo", SudoUser, got)
	}

	// What leaves it is seen, and known for its own.
	on(RootUser, "ping -c 1 -W 1 192.0.2.9 || true")
	all, err := l.Egress(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	left := Left(all)
	if len(left) != 1 || left[0].Host != "h1" || left[0].Destination.String() != "192.0.2.9" {
		t.Errorf("what left the lab: %v", left)
	}

	// A restart of its own goes on in the same process.
	life := on(RootUser, "echo kept > /root/kept && sync; cat /proc/sys/kernel/random/boot_id")
	holder := h.Holder
	begun := time.Now()
	if err := l.Reboot(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	t.Logf("restarted in %s", time.Since(begun).Round(time.Second))
	is("cat /root/kept", "kept")
	second := on(RootUser, "cat /proc/sys/kernel/random/boot_id")
	if second == life || h.Holder != holder || !holder.alive() {
		t.Errorf("boot %s, then %s; process %v, then %v", life, second, holder, h.Holder)
	}

	// Without power nothing is left of it but the disk.
	if err := l.Cut(h); err != nil {
		t.Fatal(err)
	}
	if holder.alive() {
		t.Error("it runs without power")
	}
	if err := l.Cut(h); err == nil {
		t.Error("power was taken twice")
	}
	begun = time.Now()
	if err := l.Boot(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	t.Logf("started in %s", time.Since(begun).Round(time.Second))
	is("cat /root/kept", "kept")
	if third := on(RootUser, "cat /proc/sys/kernel/random/boot_id"); slices.Contains([]string{life, second}, third) {
		t.Errorf("boot %s was there before", third)
	}
}
