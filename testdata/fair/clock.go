package fair

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// patience is how many times longer something may take on a busy machine.
const patience = 10

// A Clock measures how long something takes, and what else the machine has to do
// meanwhile.
type Clock struct {
	began time.Time
	load  load
	read  func() (load, bool)
	idle  bool // nothing else was at work in the beginning
}

// Start starts a clock.
func Start() Clock { return start(current) }

func start(read func() (load, bool)) Clock {
	l, ok := read()
	return Clock{began: time.Now(), load: l, read: read, idle: ok && l.average < l.cores}
}

// Took is the time since the start.
func (c Clock) Took() time.Duration { return time.Since(c.began) }

// Within fails the test where what it took since the start is above the limit and
// the machine was idle beside it, or where it is above ten times the limit.
func (c Clock) Within(t testing.TB, limit time.Duration) {
	t.Helper()
	c.Limit(t, c.Took(), limit)
}

// Limit is Within for a part of the time since the start.
func (c Clock) Limit(t testing.TB, took, limit time.Duration) {
	t.Helper()
	if took <= limit {
		return
	}
	why := c.busy()
	if why == "" {
		t.Errorf("it took %s on an idle machine, %s at most", took, limit)
		return
	}
	if took > patience*limit {
		t.Errorf("it took %s, more than ten times %s, though the machine was busy (%s)", took, limit, why)
		return
	}
	t.Logf("it took %s, above %s: the machine was busy (%s)", took, limit, why)
}

// busy says what kept the machine from the work, or "" where nothing did: a load
// average as high as the number of processors, or others that took as much as half
// of one while the clock ran. The average alone lags by a minute.
func (c Clock) busy() string {
	now, ok := c.read()
	switch {
	case !ok:
		return "its load is unknown"
	case !c.idle || now.average >= now.cores:
		return fmt.Sprintf("load %.1f, then %.1f, of %.0f processors", c.load.average, now.average, now.cores)
	}
	all := now.all - c.load.all
	others := (all - (now.idle - c.load.idle)) - (now.own - c.load.own)
	if cores := others.Seconds() / all.Seconds() * now.cores; cores > 0.5 {
		return fmt.Sprintf("others took %.1f of %.0f processors", cores, now.cores)
	}
	return ""
}

// load is what the machine has to do.
type load struct {
	average float64 // runnable processes, over the last minute
	cores   float64

	// Since some point in the past, of all processors together.
	all, idle time.Duration // idle without waiting for a disk
	own       time.Duration // by this process, and by its children that have ended
}

// tick is the unit of /proc/stat: every Linux that Go runs on has 100 a second.
const tick = 10 * time.Millisecond

// current reads the load; ok is false where the kernel does not tell.
func current() (l load, ok bool) {
	l.cores = float64(runtime.NumCPU())
	average, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return l, false
	}
	first, _, _ := bytes.Cut(average, []byte(" "))
	if l.average, err = strconv.ParseFloat(string(first), 64); err != nil {
		return l, false
	}
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		return l, false
	}
	line, _, _ := bytes.Cut(stat, []byte("\n"))
	fields := bytes.Fields(line) // cpu user nice system idle iowait irq softirq steal guest guest_nice
	if len(fields) < 9 {
		return l, false
	}
	for i, f := range fields[1:9] { // guests count as user already
		n, err := strconv.ParseInt(string(f), 10, 64)
		if err != nil {
			return l, false
		}
		l.all += time.Duration(n) * tick
		if i == 3 {
			l.idle = time.Duration(n) * tick
		}
	}
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		if err := syscall.Getrusage(who, &u); err != nil {
			return l, false
		}
		l.own += time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	return l, true
}
