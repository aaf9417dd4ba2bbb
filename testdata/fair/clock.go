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

// patience is how many times longer an operation may take on a busy machine.
const patience = 10

// A Clock measures how long an operation takes, and the other load of the machine meanwhile.
type Clock struct {
	began time.Time
	load  load
	read  func() (load, bool)
	idle  bool // the machine was idle at the start
}

// Start starts a clock.
func Start() Clock { return start(current) }

func start(read func() (load, bool)) Clock {
	l, ok := read()
	return Clock{began: time.Now(), load: l, read: read, idle: ok && l.average < l.cores}
}

// Took returns the time since the start.
func (c Clock) Took() time.Duration { return time.Since(c.began) }

// Within fails the test if the time since the start exceeds the limit on an idle machine, or
// ten times the limit on a busy one.
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

// busy describes the other load of the machine, "" if there was none: a load average of at
// least the number of processors, or other processes that used half a processor while the
// clock ran. The average alone lags by a minute.
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

// load is the load of the machine.
type load struct {
	average float64 // runnable processes, over the last minute
	cores   float64

	// Totals since some point in the past, over all processors.
	all, idle time.Duration // idle without waiting for a disk
	own       time.Duration // by this process, and by its children that have ended
}

// tick is the unit of /proc/stat: every Linux that Go runs on has 100 a second.
const tick = 10 * time.Millisecond

// current reads the load; ok is false if the kernel does not report it.
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
	for i, f := range fields[1:9] { // guest times are included in user
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
