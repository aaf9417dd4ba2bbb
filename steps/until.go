package steps

import (
	"context"
	"errors"
	"time"
)

// lost is a permanent error.
type lost struct{ error }

func (l *lost) Unwrap() error { return l.error }

// Permanent marks err as permanent: Until returns it immediately.
func Permanent(err error) error { return &lost{err} }

// Until calls check immediately and then at every interval, until it returns nil or an
// error marked by Lost, or until timeout. The context of check ends at the timeout.
// After the timeout Until returns the last error of check from before it.
func Until(ctx context.Context, timeout, every time.Duration, check func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	t := time.NewTicker(every)
	defer t.Stop()
	var last error
	for {
		err := check(ctx)
		var no *lost
		switch {
		case err == nil:
			return nil
		case errors.As(err, &no):
			return no.error
		case ctx.Err() == nil || last == nil:
			last = err
		}
		select {
		case <-t.C:
		case <-ctx.Done():
			return last
		}
	}
}
