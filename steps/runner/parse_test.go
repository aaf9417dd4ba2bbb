package runner

import (
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestParseInfos(t *testing.T) {
	in := "81a4 5 0 0 1700000000\x00root\x00root\x00b\x00\x00" + "a1ff 3 7 8 1700000001\x00lp\x00UNKNOWN\x00a\nb\x00the target\x00" + "43ed 4096 0 0 0\x00root\x00root\x00dir\x00\x00"
	want := []Info{
		{Name: "a\nb", Mode: fs.ModeSymlink | 0o777, Size: 3, UID: 7, GID: 8, Owner: "lp", Group: "UNKNOWN", ModTime: time.Unix(1700000001, 0).UTC(), Target: "the target"},
		{Name: "b", Mode: 0o644, Size: 5, Owner: "root", Group: "root", ModTime: time.Unix(1700000000, 0).UTC()},
		{Name: "dir", Mode: fs.ModeDir | fs.ModeSticky | 0o755, Size: 4096, Owner: "root", Group: "root", ModTime: time.Unix(0, 0).UTC()},
	}
	got, err := parseInfos([]byte(in))
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	for _, bad := range []string{"x", "\x00", in[:len(in)-1], in[:20], "zz 5 0 0 0\x00r\x00r\x00b\x00\x00", "81a4 5 0 0\x00r\x00r\x00b\x00\x00", "81a4 x 0 0 0\x00r\x00r\x00b\x00\x00"} {
		if got, err := parseInfos([]byte(bad)); err == nil {
			t.Errorf("%q was taken for %+v", bad, got)
		}
	}
}

func TestFileMode(t *testing.T) {
	for st, want := range map[uint32]fs.FileMode{
		0o100644: 0o644, 0o104755: fs.ModeSetuid | 0o755, 0o102755: fs.ModeSetgid | 0o755, 0o041777: fs.ModeDir | fs.ModeSticky | 0o777,
		0o120777: fs.ModeSymlink | 0o777, 0o060660: fs.ModeDevice | 0o660, 0o020666: fs.ModeDevice | fs.ModeCharDevice | 0o666,
		0o010600: fs.ModeNamedPipe | 0o600, 0o140755: fs.ModeSocket | 0o755,
	} {
		if got := fileMode(st); got != want {
			t.Errorf("%o is %s, want %s", st, got, want)
		}
	}
	for a, want := range map[Attr][2]string{
		{}: {"0644", ""}, {Mode: fs.ModeSetuid | 0o755, Owner: "root"}: {"4755", "root"}, {Mode: 0o600, Owner: "a", Group: "b"}: {"0600", "a:b"}, {Mode: fs.ModeSticky | 0o777, Group: "b"}: {"1777", ":b"},
	} {
		if mode, owner := a.args(0o644); mode != want[0] || owner != want[1] {
			t.Errorf("%+v gives %s %s, want %s", a, mode, owner, want)
		}
	}
}

func TestSysctlFile(t *testing.T) {
	for key, want := range map[string]string{
		"net.ipv4.ip_forward": "/proc/sys/net/ipv4/ip_forward", "net.ipv4.conf.eth0/1.forwarding": "/proc/sys/net/ipv4/conf/eth0.1/forwarding",
		"net/ipv4/conf/eth0.1/forwarding": "/proc/sys/net/ipv4/conf/eth0.1/forwarding", "net.bridge.bridge-nf-call-iptables": "/proc/sys/net/bridge/bridge-nf-call-iptables",
	} {
		if got, err := sysctlFile(key); err != nil || got != want {
			t.Errorf("%s is %s, %v; want %s", key, got, err, want)
		}
	}
	for _, bad := range []string{"", "..", "net..ipv4", "net/../../etc/passwd", "/etc/passwd", "-w", "a b", "a\nb", "a/", "a//b"} {
		if got, err := sysctlFile(bad); err == nil {
			t.Errorf("%q was taken for %s", bad, got)
		}
	}
}

// TestParseJob parses the output of systemd 252 for a transient unit.
func TestParseJob(t *testing.T) {
	props := func(active, sub, code, status string) string {
		return "LoadState=loaded\nActiveState=" + active + "\nSubState=" + sub + "\nResult=x\nExecMainCode=" + code + "\nExecMainStatus=" + status + "\n\nlog\n\nmore"
	}
	for in, want := range map[string]JobState{
		props("active", "running", "0", "0"):                       {Exists: true, Running: true},
		props("activating", "start", "0", "0"):                     {Exists: true, Running: true},
		props("deactivating", "stop-sigterm", "0", "0"):            {Exists: true, Running: true},
		props("active", "exited", "1", "0"):                        {Exists: true},
		props("failed", "failed", "1", "7"):                        {Exists: true, Exit: 7},
		props("failed", "failed", "2", "9"):                        {Exists: true, Exit: 137},
		props("failed", "failed", "3", "11"):                       {Exists: true, Exit: 139},
		props("failed", "failed", "0", "0"):                        {Exists: true, Exit: 1},
		"LoadState=not-found\nActiveState=inactive\n\nlog\n\nmore": {},
	} {
		got, err := parseJob([]byte(in))
		if string(got.Log) != "log\n\nmore" {
			t.Errorf("%q: log is %q", in, got.Log)
		}
		got.Log = nil
		if err != nil || got.Exists != want.Exists || got.Running != want.Running || got.Exit != want.Exit {
			t.Errorf("%q is %+v, %v; want %+v", in, got, err, want)
		}
	}
	for _, bad := range []string{"", "\n\n", "LoadState=loaded", "Failed to connect to bus\n\n"} {
		if got, err := parseJob([]byte(bad)); err == nil {
			t.Errorf("%q was taken for %+v", bad, got)
		}
	}
}

func TestParseUser(t *testing.T) {
	u, err := parseUser("etcd:x:998:997:etcd user:/var/lib/etcd:/sbin/nologin\nzz etcd adm\n")
	if err != nil || u.Name != "etcd" || u.UID != 998 || u.GID != 997 || u.Home != "/var/lib/etcd" || u.Shell != "/sbin/nologin" || !slices.Equal(u.Groups, []string{"adm", "etcd", "zz"}) {
		t.Errorf("%+v, %v", u, err)
	}
	for _, bad := range []string{"", "x", "a:b:c:d:e:f:g", "a:b:1:x:e:f:g", "a:b:1:2:e:f"} {
		if u, err := parseUser(bad); err == nil {
			t.Errorf("%q was taken for %+v", bad, u)
		}
	}
}

// FuzzAnswers: for any output of a host, the parsers return an error or valid values.
func FuzzAnswers(f *testing.F) {
	f.Add([]byte("81a4 5 0 0 1700000000\x00root\x00root\x00b\x00\x00"))
	f.Add([]byte("\x00\x00\x00/x\x00\x00"))
	f.Add([]byte("LoadState=loaded\nActiveState=failed\nExecMainCode=2\nExecMainStatus=-5\n\nlog"))
	f.Add([]byte("etcd:x:998:997::/:/bin/sh\netcd"))
	f.Add([]byte("a.json\x00{}\nb.json\x00{}\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if files, err := parseLines(b); err == nil {
			for name, text := range files {
				if name == "" || !strings.HasSuffix(string(text), "\n") {
					t.Errorf("%q: %q", name, text)
				}
			}
		}
		if infos, err := parseInfos(b); err == nil && !slices.IsSortedFunc(infos, func(a, b Info) int { return strings.Compare(a.Name, b.Name) }) {
			t.Fatalf("%+v", infos)
		}
		if rs, err := records(b); err == nil {
			for _, r := range rs {
				if len(r) != infoFields {
					t.Fatalf("%q has %d fields", r, len(r))
				}
				if p, there, err := compare(Upload{Path: "/x", SHA256: "0"}, "0", r); err == nil && there && p.OnlyAttr {
					t.Fatalf("%q is there and is not", r)
				}
			}
		}
		if s, err := parseJob(b); err == nil && !s.Exists && (s.Running || s.Exit != 0) {
			t.Fatalf("%+v", s)
		}
		if u, err := parseUser(string(b)); err == nil && !slices.IsSorted(u.Groups) {
			t.Fatalf("%+v", u)
		}
		parseUnit(b)
	})
}
