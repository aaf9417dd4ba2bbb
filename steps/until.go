package steps

import (
	"context"
	"errors"
	"time"
)

// lost is an error that time does not mend.
type lost struct{ error }

func (l *lost) Unwrap() error { return l.error }

// Lost marks an error that time does not mend: Until ends with it at once.
func Lost(err error) error { return &lost{err} }

// Until calls look, and again every so often, until it gives nil or an error of Lost's,
// for as long as long. look's context ends then. Until gives what look found last while
// there was time.
func Until(ctx context.Context, long, every time.Duration, look func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, long)
	defer cancel()
	t := time.NewTicker(every)
	defer t.Stop()
	var last error
	for {
		err := look(ctx)
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
