package installer

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gofrs/flock"
)

func TestWorkdirIsForItsOwnerAlone(t *testing.T) {
	t.Parallel()
	w, err := NewWorkdir(t.TempDir(), "demo")
	if err != nil {
		t.Fatal(err)
	}
	for _, sub := range []string{"", "certs", "hosts", "applied", "runs"} {
		st, err := os.Stat(filepath.Join(w.Dir, sub))
		if err != nil || st.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v %v", sub, st, err)
		}
	}
	at := time.Date(2026, 3, 4, 5, 6, 7, 0, time.FixedZone("far", 8*3600))
	if got := filepath.Base(w.Run(at)); got != "2026-03-03T21-06-07.jsonl" {
		t.Errorf("journal %s", got)
	}
}

// lockEnv asks a copy of the test binary to take a lock and hold it.
const lockEnv = "KUBEXM_TEST_LOCK"

func TestMain(m *testing.M) {
	if dir := os.Getenv(lockEnv); dir != "" {
		os.Exit(hold(dir))
	}
	flag.Parse()
	if hosts := flag.Lookup("hosts"); hosts == nil || hosts.Value.String() == "0" { // the bench measures memory too
		debug.SetGCPercent(400) // simulated hosts are small and live long: a fifth of the time is saved
	}
	os.Exit(m.Run())
}

func hold(dir string) int {
	if _, err := (Workdir{Dir: dir}).Lock(context.Background()); err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("held")
	var b [1]byte
	_, _ = os.Stdin.Read(b[:]) // until the test ends it
	return 0
}

// TestSecondRunIsRefused runs the holder as another process, as a second kubexm is.
func TestSecondRunIsRefused(t *testing.T) {
	t.Parallel()
	w, err := NewWorkdir(t.TempDir(), "demo")
	if err != nil {
		t.Fatal(err)
	}
	holder := exec.CommandContext(t.Context(), os.Args[0])
	holder.Env = append(os.Environ(), lockEnv+"="+w.Dir)
	in, err := holder.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	said := make([]byte, 4)
	if _, err := out.Read(said); err != nil || string(said) != "held" {
		t.Fatalf("%q, %v", said, err)
	}
	// In a bubble only waiting takes time, however busy the machine is.
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		_, err = w.Lock(t.Context())
		if took := time.Since(begin); took > 2*time.Second {
			t.Errorf("it waited for %s", took)
		}
	})
	var busy *BusyError
	if !errors.As(err, &busy) || !strings.Contains(err.Error(), fmt.Sprintf("process %d of ", holder.Process.Pid)) || busy.Advice() == "" {
		t.Errorf("%v", err)
	}
	// A holder that was killed holds nothing.
	if err := holder.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	in.Close()
	_ = holder.Wait() // killed
	unlock, err := w.Lock(t.Context())
	if err != nil {
		t.Fatalf("after the other was killed: %v", err)
	}
	unlock()
	if unlock, err = w.Lock(t.Context()); err != nil {
		t.Fatal(err)
	}
	unlock()
}

// TestRefusedBeforeTheHolderSaysWhoItIs: a run has the lock a moment before it has
// written down who it is.
func TestRefusedBeforeTheHolderSaysWhoItIs(t *testing.T) {
	t.Parallel()
	w, err := NewWorkdir(t.TempDir(), "demo")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(w.Dir, "lock")
	l := flock.New(path)
	if ok, err := l.TryLock(); !ok || err != nil {
		t.Fatalf("%t, %v", ok, err)
	}
	var busy *BusyError
	synctest.Test(t, func(t *testing.T) {
		if _, err := w.Lock(t.Context()); !errors.As(err, &busy) || !strings.HasSuffix(err.Error(), "it has locked "+w.Dir) {
			t.Errorf("a holder that says nothing: %v", err)
		}
		go func() {
			time.Sleep(holderWait / 2)
			if err := os.WriteFile(path+".holder", []byte("process 712 of root\n"), 0o600); err != nil {
				t.Error(err)
			}
		}()
		if _, err := w.Lock(t.Context()); !errors.As(err, &busy) || busy.Holder != "process 712 of root" {
			t.Errorf("a holder that says it late: %v", err)
		}
		if err := os.Remove(path + ".holder"); err != nil {
			t.Fatal(err)
		}
		go func() {
			time.Sleep(holderWait / 2)
			if err := l.Unlock(); err != nil {
				t.Error(err)
			}
		}()
		unlock, err := w.Lock(t.Context())
		if err != nil {
			t.Fatalf("a holder that ends: %v", err)
		}
		unlock()
	})
}
