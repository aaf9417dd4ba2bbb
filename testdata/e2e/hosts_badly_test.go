package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// bad is something on a host that is not as it has to be: how it comes, how it goes,
// and which finding tells of it.
type bad struct {
	what, host string
	make, undo string // scripts, as root
	level      string
	check      string
	says       string // in the finding
}

// Swap and the clock are the machine's: the host is shown another one, by a file over
// /proc/swaps and a date before the host's own.
var bads = []bad{
	{
		what: "a busy port", host: "h1", level: "error", check: "ports", says: "6443",
		make: "systemd-run -q --unit taken systemd-socket-activate --accept -l 6443 /bin/cat", undo: "systemctl stop taken",
	},
	{
		what: "swap", host: "h1", level: "warning", check: "swap", says: "/swapfile",
		make: `printf 'Filename\tType\tSize\tUsed\tPriority\n/swapfile\tfile\t1048572\t0\t-2\n' >/root/swaps; mount --bind /root/swaps /proc/swaps`,
		undo: "umount /proc/swaps; rm /root/swaps",
	},
	{
		what: "a skewed clock", host: "h1", level: "error", check: "clock", says: "",
		make: `printf '#!/bin/sh\nexec /usr/bin/date -d "+10 minutes" "$@"\n' >/usr/local/bin/date; chmod 755 /usr/local/bin/date`,
		undo: "rm /usr/local/bin/date",
	},
	{
		what: "a firewall, nftables' own", host: "h2", level: "warning", check: "firewall", says: "nftables",
		make: "systemctl start nftables", undo: "systemctl stop nftables",
	},
	{
		what: "stale files of Kubernetes", host: "h2", level: "error", check: "existing-installation", says: "files of another Kubernetes",
		make: "mkdir -p /etc/kubernetes/manifests; touch /etc/kubernetes/kubelet.conf", undo: "rm -r /etc/kubernetes",
	},
	{
		what: "the machine id of another", host: "h2", level: "error", check: "duplicates", says: "machine id",
		make: "cp -p /etc/machine-id /root/id; chmod u+w /etc/machine-id; echo OTHER >/etc/machine-id", undo: "cat /root/id >/etc/machine-id; chmod 444 /etc/machine-id; rm /root/id",
	},
	{
		what: "a held package", host: "h2", level: "", check: "packages", says: "held: socat",
		make: "apt-mark -qq hold socat", undo: "apt-mark -qq unhold socat",
	},
	{
		what: "a locked apt", host: "h2", level: "warning", check: "packages", says: "is changing packages",
		make: `systemd-run -q --unit locked perl -e 'use Fcntl; open F, ">>", "/var/lib/dpkg/lock-frontend"; my $l = pack("s s x4 q q l x4", F_WRLCK, 0, 0, 0, 0); fcntl(F, F_SETLK, $l) or die; sleep 600'; sleep 1; systemctl is-active locked`,
		undo: "systemctl stop locked",
	},
	{
		what: "a firewall, a stand-in of firewalld", host: "h3", level: "warning", check: "firewall", says: "firewalld",
		make: "systemd-run -q --unit firewalld sleep infinity", undo: "systemctl stop firewalld",
	},
	{
		what: "a host name that none is", host: "h3", level: "warning", check: "host-name", says: "Wrong_Name",
		make: "sysctl -q -w kernel.hostname=Wrong_Name", undo: "sysctl -q -w kernel.hostname=h3",
	},
	{
		what: "an empty resolv.conf", host: "h3", level: "", check: "resolv-conf", says: "/etc/resolv.conf",
		make: "cp -p /etc/resolv.conf /root/resolv; : >/etc/resolv.conf", undo: "cat /root/resolv >/etc/resolv.conf; rm /root/resolv",
	},
	{
		what: "no space", host: "h3", level: "error", check: "disk-space", says: "/ has",
		make: `fallocate -l $(($(df --output=avail -B1 / | tail -n 1) - 100000000)) /root/full`, undo: "rm /root/full",
	},
}

// preparedBadly looks at hosts of which each thing is wrong at the same time: one run
// tells of all of them, and of none when all is well again.
func (s *labSite) preparedBadly(t *testing.T, config string) {
	t.Helper()
	look := func() (result, []string) {
		t.Helper()
		r := s.kubexm(t, "preflight", "-f", config, "--bundle", s.bundle, "--allow-unsigned", "-o", "json")
		var found []string
		for line := range strings.Lines(r.stdout) {
			var f struct{ Type, Step, Host, Severity, Message string }
			if err := json.Unmarshal([]byte(line), &f); err != nil {
				t.Fatalf("%v: %s", err, line)
			}
			if f.Type == "finding" {
				found = append(found, fmt.Sprintf("%s %s %s %s", f.Host, strings.TrimPrefix(f.Step, "preflight."), f.Severity, f.Message))
			}
		}
		return r, found
	}
	r, well := look()
	said(t, r, 0)
	id := s.on(t, "h1", "cat /etc/machine-id")
	for _, b := range bads {
		s.on(t, b.host, strings.ReplaceAll(b.make, "OTHER", id))
	}
	r, found := look()
	said(t, r, 3)
	for _, b := range bads {
		if !slices.ContainsFunc(found, func(f string) bool {
			hosts, rest, _ := strings.Cut(f, " ")
			return (strings.Contains(hosts, b.host) || b.check == "duplicates") && strings.HasPrefix(rest, b.check+" "+b.level) && strings.Contains(rest, b.says)
		}) {
			t.Errorf("%s on %s: no finding of %s (%s) that says %q", b.what, b.host, b.check, b.level, b.says)
		}
	}
	for _, f := range found {
		t.Log(f)
	}
	for _, b := range slices.Backward(bads) {
		s.on(t, b.host, b.undo)
	}
	r, again := look()
	said(t, r, 0)
	if !slices.Equal(well, again) {
		t.Errorf("found are %q, and were %q", again, well)
	}
}
