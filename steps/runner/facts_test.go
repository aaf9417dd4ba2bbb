package runner_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mensylisir/kubexm/steps/connector/conntest"
	"github.com/mensylisir/kubexm/steps/connector/local"
	"github.com/mensylisir/kubexm/steps/runner"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestParseFacts parses the output of real hosts, testdata/facts/*.txt, and compares the
// facts with the .json file beside it.
func TestParseFacts(t *testing.T) {
	files, err := filepath.Glob("testdata/facts/*.txt")
	if err != nil || len(files) < 3 {
		t.Fatalf("%d samples, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			in, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			f, err := runner.ParseFacts(in)
			if err != nil {
				t.Fatal(err)
			}
			got, err := json.MarshalIndent(f, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			golden := strings.TrimSuffix(file, ".txt") + ".json"
			if *update {
				if err := os.WriteFile(golden, append(got, '\n'), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(append(got, '\n'), want) {
				t.Errorf("facts differ from %s:\n%s", golden, got)
			}
		})
	}
}

// section returns facts with only one section.
func section(t *testing.T, name, text string) runner.Facts {
	t.Helper()
	f, err := runner.ParseFacts([]byte("==> " + name + "\n" + text + "\n==> end\n"))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestParseFactsParts(t *testing.T) {
	for text, want := range map[string]runner.OSRelease{
		"ID=\"rocky\"\nVERSION_ID=\"9.4\"\nID_LIKE=\"rhel centos fedora\"\nPRETTY_NAME='Rocky \"9\"'": {ID: "rocky", VersionID: "9.4", Pretty: `Rocky "9"`, Like: []string{"rhel", "centos", "fedora"}},
		"ID=debian\nnonsense\nPRETTY_NAME=\"a \\\"b\\\" \\$c\"":                                       {ID: "debian", Pretty: `a "b" $c`},
	} {
		if got := section(t, "os-release", text).OS; got.String() != want.String() || got.Pretty != want.Pretty || !slices.Equal(got.Like, want.Like) {
			t.Errorf("os-release %q gives %+v, want %+v", text, got, want)
		}
	}
	for text, want := range map[string]string{
		"default via 192.0.2.1 dev eth0 proto dhcp metric 100\ndefault via 192.0.2.1 dev eth1 metric 50": "eth1",
		"default via 192.0.2.1 dev eth0\ndefault via 192.0.2.1 dev eth1 metric 50":                       "eth0",
		"default proto static scope link": "", "192.0.2.0/24 dev eth0": "", "": "",
	} {
		if got := section(t, "route4", text).Default; got != want {
			t.Errorf("route %q gives %q, want %q", text, got, want)
		}
	}
	for machine, arch := range map[string]string{"x86_64": "amd64", "aarch64": "arm64", "riscv64": "riscv64", "": ""} {
		if got := section(t, "machine", machine).Arch; got != arch {
			t.Errorf("%q is %q, want %q", machine, got, arch)
		}
	}
	for path, kind := range map[string]string{
		"/run/systemd/resolve/stub-resolv.conf": "systemd-resolved-stub", "/run/systemd/resolve/resolv.conf": "systemd-resolved",
		"/run/NetworkManager/resolv.conf": "networkmanager", "/run/resolvconf/resolv.conf": "resolvconf", "/etc/resolv.conf": "file", "": "file",
	} {
		if got := section(t, "resolv-link", path).Resolv.Kind; got != kind {
			t.Errorf("%q is %q, want %q", path, got, kind)
		}
	}
	for text, want := range map[string]string{"Enforcing": "enforcing", "1": "enforcing", "0": "permissive", "Disabled": "disabled", "": ""} {
		if got := section(t, "selinux", text).SELinux; got != want {
			t.Errorf("selinux %q gives %q, want %q", text, got, want)
		}
	}
	if f := section(t, "init", "systemd"); f.Init != "systemd" || f.Systemd != 0 {
		t.Errorf("systemd that does not run: %q %d", f.Init, f.Systemd)
	}
	if f := section(t, "time", "1700000000.5\n+0100"); !f.Time.Equal(time.Unix(1700000000, 5)) || f.TimeZone != "+0100" {
		t.Errorf("time is %s %s", f.Time, f.TimeZone)
	}
}

func TestParsePorts(t *testing.T) {
	ss := `tcp   LISTEN 0 128 0.0.0.0:22 0.0.0.0:* users:(("sshd",pid=612,fd=3))
tcp LISTEN 0 4096 127.0.0.53%lo:53 0.0.0.0:* users:(("systemd-resolve",pid=5,fd=1),("x",pid=6,fd=2))
tcp LISTEN 0 4096 *:6443 *:*
tcp LISTEN 0 4096 [::1]:2379 [::]:*
udp UNCONN 0 0 0.0.0.0:8472 0.0.0.0:*
udp UNCONN 0 0 nonsense 0.0.0.0:*
`
	want := []runner.Port{
		{Proto: "tcp", Address: netip.MustParseAddr("0.0.0.0"), Port: 22, Process: "sshd", PID: 612},
		{Proto: "tcp", Address: netip.MustParseAddr("127.0.0.53"), Port: 53, Process: "systemd-resolve", PID: 5},
		{Proto: "tcp", Address: netip.MustParseAddr("::1"), Port: 2379},
		{Proto: "tcp", Address: netip.MustParseAddr("::"), Port: 6443},
		{Proto: "udp", Address: netip.MustParseAddr("0.0.0.0"), Port: 8472},
	}
	if got := section(t, "ports", ss).Ports; !slices.Equal(got, want) {
		t.Errorf("ss gives %+v", got)
	}
	proc := `  sl  local_address rem_address   st tx_queue
   0: 00000000:0016 00000000:0000 0A 00000000:00000000
   1: 0100007F:1F90 00000000:0000 0A 00000000:00000000
   2: 0200A8C0:0016 0100A8C0:C350 01 00000000:00000000
  sl  local_address                         remote_address                        st
   0: 00000000000000000000000001000000:094B 00000000000000000000000000000000:0000 0A
  sl  local_address rem_address   st
   5: 00000000:2118 00000000:0000 07 00000000:00000000
   6: 0200A8C0:A000 0100A8C0:0035 01 00000000:00000000
  sl  local_address rem_address   st
`
	want = []runner.Port{
		{Proto: "tcp", Address: netip.MustParseAddr("0.0.0.0"), Port: 22},
		{Proto: "tcp", Address: netip.MustParseAddr("::1"), Port: 2379},
		{Proto: "tcp", Address: netip.MustParseAddr("127.0.0.1"), Port: 8080},
		{Proto: "udp", Address: netip.MustParseAddr("0.0.0.0"), Port: 8472},
	}
	if got := section(t, "ports", proc).Ports; !slices.Equal(got, want) {
		t.Errorf("/proc/net gives %+v", got)
	}
	f := runner.Facts{Ports: want}
	if got := f.Listening("tcp", 22); len(got) != 1 || len(f.Listening("udp", 22)) != 0 || len(f.Ports) != 4 {
		t.Errorf("listening on 22: %+v", got)
	}
}

func TestFactsDisk(t *testing.T) {
	f := section(t, "disks", `Filesystem Type 1024-blocks Used Available Capacity Mounted on
/dev/vda1 ext4 1000 400 600 40% /
/dev/vdb xfs 2000 0 2000 0% /var/lib
/dev/vdc xfs 3000 0 3000 0% /mnt/with some  spaces
overlay overlay 10 1 9 10% /var/lib/containers/x
not a line`)
	for path, want := range map[string]string{
		"/": "/", "/etc/x": "/", "/var": "/", "/var/lib": "/var/lib", "/var/lib/etcd": "/var/lib", "/var/library": "/", "/mnt/with some  spaces/x": "/mnt/with some  spaces",
	} {
		if d, ok := f.Disk(path); !ok || d.Mount != want {
			t.Errorf("%s is on %+v, want %s", path, d, want)
		}
	}
	if d, _ := f.Disk("/var/lib/x"); d.Size != 2000<<10 || d.Free != 2000<<10 || d.Type != "xfs" {
		t.Errorf("disk is %+v", d)
	}
	if _, ok := (runner.Facts{}).Disk("/"); ok {
		t.Error("a host without disks has one")
	}
}

func TestParseFactsCutOff(t *testing.T) {
	whole := simFacts(t)
	if _, err := runner.ParseFacts(whole); err != nil {
		t.Fatal(err)
	}
	for _, b := range [][]byte{nil, []byte("bash: no such file"), whole[:len(whole)/2]} {
		if _, err := runner.ParseFacts(b); err == nil {
			t.Errorf("%d bytes without an end were taken", len(b))
		}
	}
}

// simFacts returns the facts of a simulated host, as text.
func simFacts(t testing.TB) []byte {
	t.Helper()
	sim := conntest.New(t)
	var out bytes.Buffer
	r := runner.New(tee{sim, &out}, runner.Options{})
	if _, err := r.Facts(t.Context()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestSimFacts: a step sees the facts that a test sets.
func TestSimFacts(t *testing.T) {
	sim := conntest.New(t)
	sim.SetHostname("node7")
	sim.SetMachine(func(m *conntest.Machine) {
		m.Machine, m.CPUs, m.MemoryMiB, m.Swap, m.CgroupV2, m.SELinux = "aarch64", 3, 1024, true, false, "Enforcing"
		m.Addresses = []string{"192.0.2.7/24", "2001:db8::7/64"}
		m.ClockAhead = time.Hour
	})
	f, err := runner.New(sim, runner.Options{}).Facts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if f.Hostname != "node7" || f.Arch != "arm64" || f.CPUs != 3 || f.Memory != 1<<30 || len(f.Swaps) != 1 || f.CgroupV2 || f.SELinux != "enforcing" || f.Systemd != 252 {
		t.Errorf("facts are %+v", f)
	}
	if i, ok := f.InterfaceOf(netip.MustParseAddr("2001:db8::7")); !ok || i.Name != f.Default {
		t.Errorf("interface is %+v, default %q", i, f.Default)
	}
	if d := f.ClockOffset - time.Hour; d.Abs() > time.Minute {
		t.Errorf("clock is off by %s", f.ClockOffset)
	}
}

// TestFactsHaveEverySection: a misspelled section would always be empty.
func TestFactsHaveEverySection(t *testing.T) {
	names := func(b []byte) []string {
		var out []string
		for line := range strings.Lines(string(b)) {
			if n, ok := strings.CutPrefix(line, "==> "); ok {
				out = append(out, strings.TrimSpace(n))
			}
		}
		slices.Sort(out)
		return out
	}
	var out bytes.Buffer
	if _, err := runner.New(tee{local.New(local.Config{}), &out}, runner.Options{}).Facts(t.Context()); err != nil {
		t.Fatal(err)
	}
	here := names(out.Bytes())
	if slices.Contains(here, "") || len(here) < 25 {
		t.Errorf("sections are %q", here)
	}
	for _, n := range names(simFacts(t)) {
		if !slices.Contains(here, n) {
			t.Errorf("the simulated host has a section %q that the script has not", n)
		}
	}
}

// FuzzFacts: no output of a host causes a panic or negative numbers.
func FuzzFacts(f *testing.F) {
	samples, err := filepath.Glob("testdata/facts/*.txt")
	if err != nil {
		f.Fatal(err)
	}
	for _, s := range samples {
		b, err := os.ReadFile(s)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte("==> ports\nsl\n0: 00000000:0016 00000000:0000 0A\n==> end"))
	f.Add([]byte("==> disks\na b c d e f /x y\n==> inodes\na 1 2 3 4 /x y\n==> time\n-1.-1\n==> end"))
	f.Fuzz(func(t *testing.T, b []byte) {
		facts, err := runner.ParseFacts(b)
		if err != nil {
			return
		}
		if facts.CPUs < 0 || facts.Memory < 0 || facts.Available < 0 || facts.UID < 0 || facts.Systemd < 0 {
			t.Fatalf("negative: %+v", facts)
		}
		for _, d := range facts.Disks {
			if d.Size < 0 || d.Free < 0 || d.Inodes < 0 || d.InodesFree < 0 || !strings.HasPrefix(d.Mount, "/") {
				t.Fatalf("disk: %+v", d)
			}
		}
		for _, p := range facts.Ports {
			if !p.Address.IsValid() || p.Proto == "" || p.PID < 0 {
				t.Fatalf("port: %+v", p)
			}
		}
		if _, err := json.Marshal(facts); err != nil {
			t.Fatal(err)
		}
	})
}
