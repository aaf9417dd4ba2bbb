package drivers

import (
	"bytes"
	"context"
	"math"
	"os"
	"strconv"
	"sync"
	"time"
)

// pace calls do so many times a second until the context ends, each call in a goroutine
// of its own, and waits for those that are under way. Calls that the machine was too
// busy for are left out, and late is told by how much.
func pace(ctx context.Context, rate int, late func(time.Time, time.Duration), do func(n int)) {
	var calls sync.WaitGroup
	defer calls.Wait()
	every := time.Second / time.Duration(rate)
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	before := time.Now()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		now := time.Now()
		late(now, now.Sub(before)-every)
		before = now
		calls.Go(func() { do(n) })
	}
}

// watchLoad tells the machine's load average every few seconds.
func watchLoad(ctx context.Context, tell func(time.Time, float64)) {
	for tell(time.Now(), load()); pause(ctx, 2*time.Second); {
		tell(time.Now(), load())
	}
}

// load is the load average over a minute; where the kernel does not tell, it is as high
// as can be.
func load() float64 {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return math.Inf(1)
	}
	first, _, _ := bytes.Cut(text, []byte(" "))
	average, err := strconv.ParseFloat(string(first), 64)
	if err != nil {
		return math.Inf(1)
	}
	return average
}

// pause waits, and reports whether the context is still alive.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// until tries something until it succeeds, a time has passed, or the context ends. It
// gives the last error.
func until(ctx context.Context, within time.Duration, try func() error) error {
	for began := time.Now(); ; {
		err := try()
		if err == nil || time.Since(began) > within || !pause(ctx, 200*time.Millisecond) {
			return err
		}
	}
}
