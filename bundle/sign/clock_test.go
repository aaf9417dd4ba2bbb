package sign

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestClock: a signature with a key is as good by a clock that is wrong, in either
// direction, as by the clock that it was made by. What counts is the key alone.
func TestClock(t *testing.T) {
	made := time.Now()
	s, trust := signer(t)
	_, stranger := signer(t)
	line := must(s.Sign(must(NewStatement("receipt", other, "https://example.org/receipt/v1", struct{}{}))(t)))(t)
	const year = 365 * 24 * time.Hour
	synctest.Test(t, func(t *testing.T) {
		for _, by := range []time.Duration{-10 * year, -time.Hour, 0, time.Hour, 10 * year} { // in a bubble clocks only go ahead, from the year 2000
			time.Sleep(time.Until(made.Add(by)))
			if off := time.Since(made) - by; off.Abs() > time.Second {
				t.Fatalf("the clock is %s from where it was to be", off)
			}
			if _, err := trust.Verify(line); err != nil {
				t.Errorf("by a clock that is %s wrong: %v", by, err)
			}
			if _, err := stranger.Verify(line); !errors.Is(err, ErrKey) {
				t.Errorf("by a clock that is %s wrong, another key: %v", by, err)
			}
		}
	})
}
