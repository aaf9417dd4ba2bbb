package main

import (
	"context"
	"errors"
	"fmt"
)

// powerPoints is at how many points of an operation the machine loses power, and powerBatch
// how many of them are in one row.
const (
	powerPoints = 50
	powerBatch  = 10
)

// powerRows have the machine lose its power on which kubexm runs. The disk keeps what
// it was told to keep, and of the rest what chance wants.
func powerRows() []row {
	var rows []row
	for _, d := range operations() {
		for i := 0; i < powerPoints; i += powerBatch {
			rows = append(rows, row{
				group: "power", fault: fmt.Sprintf("%s, %d to %d of %d", d.name, i+1, i+powerBatch, powerPoints), quick: i == 0 && d.quick(),
				expect: "nothing half under a final name; then the same as ever, in 1 re-run",
				run:    func(ctx context.Context, l *lab) (string, error) { return l.powerless(ctx, d, i) },
			})
		}
	}
	return append(rows, row{
		group: "power", fault: "control: a naive writer", expect: "half an archive is found", quick: true, run: naivePower,
	})
}

// points is how many of a batch are tried.
func (l *lab) points(d operation) int {
	switch {
	case !l.quick:
		return powerBatch
	case len(d.phases) > 1:
		return 1
	}
	return 3
}

func (l *lab) powerless(ctx context.Context, d operation, first int) (string, error) {
	sizes, err := l.sizesOf(ctx, d)
	if err != nil {
		return "", err
	}
	lost, n := 0, l.points(d)
	for i := first; i < first+n; i++ {
		ran, err := l.losePower(ctx, d, sizes, i, n)
		if err != nil {
			return "", fmt.Errorf("point %d: %w", i+1, err)
		}
		lost += ran
	}
	if all := n * len(d.phases); lost < (all+1)/2 {
		return "", fmt.Errorf("only %d of %d losses of power came before the end", lost, all)
	}
	return fmt.Sprintf("0 corrupt; converges %d of %d times, %d of %d losses of power came before the end", n, n, lost, n*len(d.phases)), nil
}

// losePower carries out d, and takes the power away once in each of its commands.
func (l *lab) losePower(ctx context.Context, d operation, sizes []size, i, n int) (lost int, err error) {
	rng := chance(i, 60)
	s, err := l.stand(ctx, fmt.Sprintf("power-%s-%d", d.name, i), d, rng.IntN(3) == 0)
	if err != nil {
		return 0, err
	}
	defer s.end()
	for j, p := range d.phases {
		at := spread(i%n, n, sizes[j].steps, rng)
		ran, err := s.loseAt(ctx, p, at, rng)
		if err != nil {
			return lost, fmt.Errorf("%s: %w", p.name, err)
		}
		if !ran {
			if err := p.done(ctx, s); err != nil {
				return lost, fmt.Errorf("%s, undisturbed: %w", p.name, err)
			}
			continue
		}
		lost++
		if p.whole != nil {
			if err := p.whole(s); err != nil {
				return lost, fmt.Errorf("%s, without power at call %d of %d: %w", p.name, at, sizes[j].steps, err)
			}
		}
		if err := s.finish(ctx, p); err != nil {
			return lost, fmt.Errorf("%s, after no power at call %d of %d: %w", p.name, at, sizes[j].steps, err)
		}
	}
	return lost, nil
}

// naiveOperation is the naive writer on the disk of a stand.
func (l *lab) naiveOperation() operation {
	return operation{name: "naive", phases: []phase{{
		name: "write naively", args: func(s *stand) []string { return l.naiveArgs(s.site) },
		done: func(context.Context, *stand) error { return nil },
	}}}
}

// naiveStand is a stand whose program is this one.
func (l *lab) naiveStand(ctx context.Context, name string) (*stand, error) {
	s, err := l.stand(ctx, name, l.naiveOperation(), false)
	if err != nil {
		return nil, err
	}
	s.exe = l.self
	return s, nil
}

// naivePower lets a naive writer lose power as often as one batch of builds.
func naivePower(ctx context.Context, l *lab) (string, error) {
	p, found, n := l.naiveOperation().phases[0], 0, l.batch()
	s, err := l.naiveStand(ctx, "naive-power")
	if err != nil {
		return "", err
	}
	err = s.disk.cutAt(0)
	r := s.try(ctx, p.args(s), nil)
	state, serr := s.disk.state()
	whole, herr := hashFile(s.archive())
	s.end()
	if err := errors.Join(err, serr, herr); r.code != 0 || err != nil {
		return "", errors.Join(errors.New(r.String()), err)
	}
	for i := range n {
		s, err := l.naiveStand(ctx, fmt.Sprintf("naive-power-%d", i))
		if err != nil {
			return "", err
		}
		_, err = s.loseAt(ctx, p, spread(i, n, state.Steps, chance(i, 61)), chance(i, 62))
		if got, herr := hashFile(s.archive()); err == nil && herr == nil && got != whole {
			found++
		}
		s.end()
		if err != nil {
			return "", err
		}
	}
	if found < n/2 {
		return "", fmt.Errorf("half an archive was found %d times in %d losses of power: the rows above prove little", found, n)
	}
	return fmt.Sprintf("half an archive is found after %d of %d losses of power", found, n), nil
}
