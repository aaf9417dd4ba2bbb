package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// Pairs of installs in all, and in one row.
const (
	installPairs = 20
	pairBatch    = 5
	// mostRefusal is how long the second may take to be refused; it prints how long it
	// did, since others may be at work on this machine.
	mostRefusal = 5 * time.Second
)

// claimRows are two installs of one cluster at once, from one folder and from two, as
// from two machines.
func claimRows() []row {
	var rows []row
	for first := 0; first < installPairs; first += pairBatch {
		rows = append(rows, row{
			group: "pair", fault: fmt.Sprintf("two installs of one cluster, %d to %d of %d", first+1, first+pairBatch, installPairs),
			expect: "one makes it; the other is refused at once, and told by whom it is held", quick: first == 0,
			run: func(ctx context.Context, l *lab) (string, error) { return l.twoInstalls(ctx, first) },
		})
	}
	return rows
}

func (l *lab) twoInstalls(ctx context.Context, first int) (string, error) {
	m, err := l.model(ctx)
	if err != nil {
		return "", err
	}
	n := pairBatch
	if l.quick {
		n = 2
	}
	var slowest time.Duration
	for i := first; i < first+n; i++ {
		later := moment(i, installPairs, m.install/2, 2000)
		took, err := l.twoAtOnce(ctx, i, later)
		for errors.Is(err, errApart) { // the machine has become faster since the model's run
			later /= 4
			took, err = l.twoAtOnce(ctx, i, later)
		}
		if err != nil {
			return "", fmt.Errorf("pair %d: %w", i+1, err)
		}
		slowest = max(slowest, took)
	}
	return fmt.Sprintf("one of two, %d times; refused after %.1f s at most", n, slowest.Seconds()), nil
}

// errApart says that the first install had ended, or nearly, when the second began.
var errApart = errors.New("the second began when the first had ended")

// nearly is what a process may take from its start to its first lock, and what it waits
// for leases that another run may be about to give back.
const nearly = time.Second

// twoAtOnce begins a second install some time after a first one. Every other pair is
// from two folders. It gives how long the one that was refused took.
func (l *lab) twoAtOnce(ctx context.Context, i int, later time.Duration) (time.Duration, error) {
	g, err := l.clusterSite(ctx, fmt.Sprintf("two-installs-%d", i))
	if err != nil {
		return 0, err
	}
	defer g.close()
	one, two := g.install(), g.install()
	if i%2 == 1 {
		two[len(two)-1] = filepath.Join(g.root, "other")
	}
	var ends [2]ended
	var both errgroup.Group
	var firstEnded, secondBegan time.Time
	both.Go(func() error {
		ends[0] = g.run(ctx, one...)
		firstEnded = time.Now()
		return nil
	})
	both.Go(func() error {
		wait(ctx, later)
		secondBegan = time.Now()
		ends[1] = g.run(ctx, two...)
		return nil
	})
	if err := both.Wait(); err != nil {
		return 0, err
	}
	won, lost := ends[0], ends[1]
	if won.code != 0 {
		won, lost = lost, won
		g.workdir = two[len(two)-1]
	}
	switch {
	case won.code != 0:
		return 0, fmt.Errorf("neither made it: %s; %s", clip(won.stderr, 700), clip(lost.stderr, 700))
	case lost.code == 0 && later > 0 && firstEnded.Sub(secondBegan) < nearly:
		return 0, errApart
	case lost.code == 0:
		return 0, errors.New("BOTH WENT ON")
	case !strings.Contains(lost.stderr, "another run works on this cluster") || !strings.Contains(lost.stderr, "process "):
		return 0, fmt.Errorf("refused without saying who holds it: exit %d: %s", lost.code, clip(lost.stderr, 700))
	case lost.took > mostRefusal:
		return 0, fmt.Errorf("refused after %s", lost.took.Round(time.Millisecond))
	}
	return lost.took, errors.Join(g.sound(), g.made(ctx))
}
