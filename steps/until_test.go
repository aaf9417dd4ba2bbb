package steps_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mensylisir/kubexm/steps"
)

func TestUntil(t *testing.T) {
	bad, worse := errors.New("bad"), errors.New("worse")
	for name, x := range map[string]struct {
		looks []error // the last for ever
		want  error
		took  time.Duration
	}{
		"at once":       {[]error{nil}, nil, 0},
		"the third":     {[]error{bad, worse, nil}, nil, 4 * time.Second},
		"never":         {[]error{bad, worse}, worse, 11 * time.Second},
		"lost":          {[]error{bad, steps.Permanent(worse)}, worse, 2 * time.Second},
		"lost, wrapped": {[]error{errors.Join(steps.Permanent(worse))}, worse, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin, n := time.Now(), 0
				err := steps.Until(t.Context(), 11*time.Second, 2*time.Second, func(context.Context) error {
					n++
					return x.looks[min(n, len(x.looks))-1]
				})
				if err != x.want || time.Since(begin) != x.took { //nolint:errorlint // unwrapped
					t.Errorf("%v after %s", err, time.Since(begin))
				}
			})
		})
	}
	// What is found once there is no time does not replace what was found before.
	synctest.Test(t, func(t *testing.T) {
		n := 0
		err := steps.Until(t.Context(), 5*time.Second, 2*time.Second, func(ctx context.Context) error {
			if n++; n == 1 {
				return bad
			}
			<-ctx.Done()
			return ctx.Err()
		})
		if !errors.Is(err, bad) {
			t.Errorf("%v", err)
		}
	})
}
