package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mensylisir/kubexm/testdata/fair"
	"github.com/mensylisir/kubexm/testdata/upstream"
)

// kills is how many times the build is killed, each time with a new cache.
const kills = 25

// Killed with -9 at any point and run again, a build finishes with the bytes
// that it always gives, leaves nothing else behind, and fetches no more again
// than the files that were under way.
func TestKilledAnywhere(t *testing.T) {
	s := newSite(t, 0.05)
	const workers = 4
	slow := upstream.Fault{Rate: 8 << 20} // per request: stretches the build, so that kills land inside of it
	control, length := s.control(t, slow, workers)
	rng := fair.Rand(t)
	late := 0
	for i := 0; i < kills; {
		part := (float64(i) + rng.Float64()) / kills
		point := time.Duration(part * float64(length))
		name := "run-" + strconv.Itoa(i) + "-" + strconv.Itoa(late)
		out, cache := s.newFolder(t, name), filepath.Join(s.dir, "cache-"+name)
		args := s.build(filepath.Join(out, "bundle.tar.zst"), cache, "--parallel", strconv.Itoa(workers))
		s.up.Forget()
		s.up.Break("/", slow)
		running, took := s.kill(t, args, point)
		if !running { // the machine has less to do than it had
			if late++; late == 4*kills {
				t.Fatalf("%d kills came after the build's end, %d before: the test proves little", late, i)
			}
			length = min(length, took)
			if err := errors.Join(os.RemoveAll(out), os.RemoveAll(cache)); err != nil {
				t.Fatal(err)
			}
			continue
		}
		i++
		if path := filepath.Join(out, "bundle.tar.zst"); exists(path) && hash(t, path) != control {
			t.Errorf("killed after %s: an archive stands that is not whole", point)
		}
		s.up.Mend()
		if r := s.run(t, append(args[:len(args)-1:len(args)-1], "--force", args[len(args)-1])); r.code != 0 {
			t.Errorf("run again after a kill at %s: exit %d\n%s", point, r.code, r.stderr)
			continue
		}
		if got := hash(t, filepath.Join(out, "bundle.tar.zst")); got != control {
			t.Errorf("killed after %s: sha256 %s, want %s", point, got, control)
		}
		if left := names(t, out); len(left) != 1 {
			t.Errorf("killed after %s: left %v in the output folder", point, left)
		}
		if again := s.twice(); len(again) > workers {
			t.Errorf("killed after %s: %d files were fetched again, %d at most were under way:\n%s", point, len(again), workers, strings.Join(again, "\n"))
		}
		if err := errors.Join(os.RemoveAll(out), os.RemoveAll(cache)); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("a build takes %s; %d kills came before its end, and %d after it", length.Round(time.Millisecond), kills, late)
}

// control builds without a kill and gives the archive's digest and how long it took.
func (s *site) control(t *testing.T, slow upstream.Fault, workers int) (string, time.Duration) {
	t.Helper()
	s.up.Break("/", slow)
	path := filepath.Join(s.newFolder(t, "control"), "bundle.tar.zst")
	r := s.must(t, s.build(path, filepath.Join(s.dir, "cache-control"), "--parallel", strconv.Itoa(workers))...)
	return hash(t, path), r.took
}

// kill starts kubexm and kills it after d. It reports whether it still ran, and
// for how long it did.
func (s *site) kill(t *testing.T, args []string, d time.Duration) (bool, time.Duration) {
	t.Helper()
	c := s.command(t, args)
	begin := time.Now()
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(d, func() { _ = c.Process.Kill() })
	defer timer.Stop()
	err := c.Wait()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		t.Fatal(err)
	}
	if err != nil && ended.Exited() {
		t.Fatalf("the build failed by itself: %v", err)
	}
	return err != nil, time.Since(begin)
}

// twice lists what was sent more than once, in whole or in part, among files
// and blobs. Documents of images are small, and who has them asks anew anyway.
func (s *site) twice() []string {
	var list []string
	for at, c := range s.up.Counts() {
		if c.Size > 0 && c.Bytes > c.Size && !strings.Contains(at, "/manifests/") {
			list = append(list, fmt.Sprintf("%s: %d bytes sent, it has %d", at, c.Bytes, c.Size))
		}
	}
	slices.Sort(list)
	return list
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
