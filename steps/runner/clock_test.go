package runner

import (
	"testing"
	"time"
)

// A slow answer is no wrong clock, and hides none that is further off than it took.
func TestClockOffset(t *testing.T) {
	began := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name             string
		read, took, want time.Duration // read is after began
	}{
		{"at once", 5 * time.Millisecond, 10 * time.Millisecond, 0},
		{"read at the beginning of a slow answer", 0, 30 * time.Second, 0},
		{"read at the end of a slow answer", 30 * time.Second, 30 * time.Second, 0},
		{"ahead", time.Hour, 100 * time.Millisecond, time.Hour - 100*time.Millisecond},
		{"behind", -time.Hour, 100 * time.Millisecond, -time.Hour},
		{"ahead, and slow", 40 * time.Second, 30 * time.Second, 10 * time.Second},
		{"behind, and slow", -6 * time.Second, 30 * time.Second, -6 * time.Second},
	} {
		if got := clockOffset(began.Add(c.read), began, c.took); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}
