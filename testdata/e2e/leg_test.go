package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
)

// try is one try of a leg of the walk. What a leg calls reports to it as it would to a
// test; but a try that failed is no failed test yet, for there may be another.
type try struct {
	testing.TB // of the test that the leg belongs to: its log, context and environment

	mu       sync.Mutex
	failed   bool
	panicked bool
	cleanups []func()
	helpers  map[string]bool
}

// attempt runs a leg to its end and gives what became of it. What it logs goes to t,
// which neither fails by it nor ends.
func attempt(t testing.TB, leg func(testing.TB)) *try {
	x := &try{TB: t, helpers: map[string]bool{}}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer x.clean()
		defer func() { x.broke(recover()) }()
		leg(x)
	}()
	<-ended
	return x
}

func (x *try) clean() {
	for {
		x.mu.Lock()
		n := len(x.cleanups)
		if n == 0 {
			x.mu.Unlock()
			return
		}
		next := x.cleanups[n-1]
		x.cleanups = x.cleanups[:n-1]
		x.mu.Unlock()
		done := make(chan struct{})
		go func() { // one that calls Fatal ends itself alone
			defer close(done)
			defer func() { x.broke(recover()) }()
			next()
		}()
		<-done
	}
}

// broke is told what somebody panicked with, or nil.
func (x *try) broke(with any) {
	if with == nil {
		return
	}
	x.say(fmt.Sprintf("panic: %v\n%s", with, debug.Stack()))
	x.mu.Lock()
	x.failed, x.panicked = true, true
	x.mu.Unlock()
}

// say logs with the place that a reader looks for: the first that is no helper's.
func (x *try) say(text string) {
	at := ""
	pcs := make([]uintptr, 32)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs)])
	x.mu.Lock()
	for more := true; more && at == ""; {
		var f runtime.Frame
		if f, more = frames.Next(); !x.helpers[f.Function] {
			at = fmt.Sprintf("%s:%d: ", filepath.Base(f.File), f.Line)
		}
	}
	x.mu.Unlock()
	fmt.Fprintf(x.Output(), "%s%s\n", at, strings.TrimSuffix(text, "\n"))
}

// Helper marks the caller as one whose lines are not what a reader looks for.
func (x *try) Helper() {
	pcs := make([]uintptr, 1)
	runtime.Callers(2, pcs)
	f, _ := runtime.CallersFrames(pcs).Next()
	x.mu.Lock()
	x.helpers[f.Function] = true
	x.mu.Unlock()
}

// Cleanup has next called when the try has ended.
func (x *try) Cleanup(next func()) {
	x.mu.Lock()
	x.cleanups = append(x.cleanups, next)
	x.mu.Unlock()
}

// TempDir makes a folder that goes when the try has ended: the next one gets another.
func (x *try) TempDir() string {
	dir, err := os.MkdirTemp("", "kubexm-leg-")
	if err != nil {
		x.Fatal(err)
	}
	x.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			x.Error(err)
		}
	})
	return dir
}

// Fail, and what calls it, reports to the try.
func (x *try) Fail() {
	x.mu.Lock()
	x.failed = true
	x.mu.Unlock()
}

// Failed tells of this try alone.
func (x *try) Failed() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.failed
}

func (x *try) FailNow()                          { x.Fail(); runtime.Goexit() }
func (x *try) Log(args ...any)                   { x.say(fmt.Sprintln(args...)) }
func (x *try) Logf(format string, args ...any)   { x.say(fmt.Sprintf(format, args...)) }
func (x *try) Error(args ...any)                 { x.say(fmt.Sprintln(args...)); x.Fail() }
func (x *try) Errorf(format string, args ...any) { x.say(fmt.Sprintf(format, args...)); x.Fail() }
func (x *try) Fatal(args ...any)                 { x.say(fmt.Sprintln(args...)); x.FailNow() }
func (x *try) Fatalf(format string, args ...any) { x.say(fmt.Sprintf(format, args...)); x.FailNow() }

// A leg that is left out would be one that nobody saw: to skip is to fail.
func (x *try) Skip(args ...any)                 { x.say(fmt.Sprintln(args...)); x.FailNow() }
func (x *try) Skipf(format string, args ...any) { x.say(fmt.Sprintf(format, args...)); x.FailNow() }
func (x *try) SkipNow()                         { x.FailNow() }
func (x *try) Skipped() bool                    { return false }
