package drivers

import (
	"bufio"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// alone asks a copy of the test binary to be the API and the web server: what they take
// is not the drivers'.
const alone = "KUBEXM_DRIVERS_FAKE"

// TestFakeAlone serves until its input ends, for BenchmarkMinute.
func TestFakeAlone(t *testing.T) {
	if os.Getenv(alone) == "" {
		t.Skip("BenchmarkMinute runs it")
	}
	f := newFakeAPI(t)
	c := f.config(f.serve(t, ""))
	if err := json.NewEncoder(os.Stdout).Encode(fakeAlone{Endpoint: c.Endpoint, CA: c.CA, Web: f.web}); err != nil {
		t.Fatal(err)
	}
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
}

type fakeAlone struct {
	Endpoint, Web string
	CA            []byte
}

// BenchmarkMinute runs the drivers for a minute at their full rate, over namespaces as in
// a lab where that is possible, and tells what they take of a processor.
func BenchmarkMinute(b *testing.B) {
	server := exec.CommandContext(b.Context(), os.Args[0], "-test.run=^TestFakeAlone$", "-test.v=false")
	server.Env = append(os.Environ(), alone+"=1")
	in, err := server.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := server.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := server.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { in.Close(); _ = server.Wait() })
	var at fakeAlone
	if err := json.NewDecoder(out).Decode(&at); err != nil {
		b.Fatal(err)
	}
	f := &fakeAPI{web: at.Web}
	c := Config{Endpoint: at.Endpoint, CA: at.CA, Token: "admin", ServiceDial: f.reaches((&net.Dialer{}).DialContext)}
	if os.Geteuid() == 0 { // as in a lab
		c.Dial = Within("/proc/self/ns/net").Dial
		c.ServiceDial = f.reaches(Within("/proc/self/ns/net").Dial)
	}
	for b.Loop() {
		d, err := Start(b.Context(), c)
		if err != nil {
			b.Fatal(err)
		}
		before := cpu(b)
		began := time.Now()
		time.Sleep(time.Minute)
		took, real := cpu(b)-before, time.Since(began)
		r, err := d.Stop(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(took.Seconds(), "cpu-s/min")
		b.ReportMetric(100*took.Seconds()/real.Seconds(), "%cpu")
		b.Logf("%s of a processor in %s on %d cores\n%s", took, real, runtime.NumCPU(), r)
	}
}

func cpu(t testing.TB) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
