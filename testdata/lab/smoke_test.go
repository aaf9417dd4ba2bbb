package lab

import (
	"errors"
	"testing"
	"time"
)

func TestSettled(t *testing.T) {
	refused := errors.New("connection refused")
	// answersAt refuses until the nth time it is asked.
	answersAt := func(n int, asked *int) func() (string, error) {
		return func() (string, error) {
			*asked++
			if *asked < n {
				return "", refused
			}
			return "here", nil
		}
	}
	for _, c := range []struct {
		name   string
		at     int
		within time.Duration
		asked  int // 0: more than once
		ok     bool
	}{
		{"at once", 1, 0, 1, true},
		{"when kube-proxy has heard of it", 3, time.Minute, 3, true},
		{"never", 1 << 30, 20 * time.Millisecond, 0, false},
		{"never, and there is no time", 1 << 30, 0, 1, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var asked int
			var told []string
			got, err := settled(t.Context(), c.within, time.Millisecond, func(what string) { told = append(told, what) }, answersAt(c.at, &asked))
			if c.ok != (err == nil) || c.ok && got != "here" || !c.ok && !errors.Is(err, refused) {
				t.Errorf("%q, %v", got, err)
			}
			if c.asked > 0 && asked != c.asked || c.asked == 0 && asked < 2 {
				t.Errorf("asked %d times", asked)
			}
			if (len(told) > 0) != (c.ok && c.at > 1) {
				t.Errorf("told %q", told)
			}
		})
	}
}
