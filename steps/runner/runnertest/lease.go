package runnertest

import (
	"context"
	"errors"
	"io/fs"
	"testing"
	"time"

	"github.com/mensylisir/kubexm/steps/runner"
)

// claim holds a lease. The returned function ends it and waits for the end.
func (b *bench) claim(l runner.Lease) (end func() error, err error) {
	ctx, cancel := context.WithCancel(b.ctx)
	held, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- b.r.Hold(ctx, l, func() { close(held) }) }()
	select {
	case <-held:
		return func() error { cancel(); return <-ended }, nil
	case err := <-ended:
		cancel()
		return nil, err
	case <-time.After(20 * time.Second):
		cancel()
		return nil, errors.New("no answer within 20 seconds")
	}
}

func lease(_ *testing.T, b *bench) {
	l := runner.Lease{Path: b.path("run/demo.run"), Holder: "one on wd1 since noon", Interval: 50 * time.Millisecond}
	end, err := b.claim(l)
	b.ok(err)
	began := time.Now()
	_, err = b.claim(runner.Lease{Path: l.Path, Holder: "another"})
	var taken *runner.HeldError
	if !errors.As(err, &taken) || taken.Holder != l.Holder {
		b.Fatalf("a second holder got %v", err)
	}
	if took := time.Since(began); took > 10*time.Second {
		b.Fatalf("it was refused after %s", took)
	}
	b.ok(end())
	if b.Sim == nil {
		_, err := b.r.Stat(b.ctx, l.Path)
		b.is(err, fs.ErrNotExist)
	}
	again, err := b.claim(runner.Lease{Path: l.Path, Holder: "another"})
	b.ok(err)
	b.ok(again())
	if _, err := b.claim(runner.Lease{Path: l.Path, Holder: "two\nlines"}); err == nil {
		b.Fatal("a holder of two lines was taken")
	}
}
