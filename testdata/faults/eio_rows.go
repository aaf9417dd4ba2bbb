package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// eioPoints is how many of the calls of a kind fail, one at a time, in each command. All
// of them fail where there are fewer.
const eioPoints = 24

// eioRows have one call on the disk fail, once. After a sync that failed the dirty pages
// are gone, and the next sync says that all is well.
func eioRows() []row {
	var rows []row
	for _, d := range operations() {
		for _, kind := range []callKind{callWrite, callSync, callRename, callClose} {
			rows = append(rows, row{
				group: "eio", fault: fmt.Sprintf("%s, %s", d.name, kind), quick: kind == callSync && d.quick(),
				expect: "an error that names the file; nothing half under a final name; then the same as ever",
				run:    func(ctx context.Context, l *lab) (string, error) { return l.failing(ctx, d, kind) },
			})
		}
	}
	return append(rows, row{
		group: "eio", fault: "control: a naive writer", expect: "half an archive is found", quick: true, run: naiveEIO,
	})
}

func (l *lab) failing(ctx context.Context, d operation, kind callKind) (string, error) {
	sizes, err := l.sizesOf(ctx, d)
	if err != nil {
		return "", err
	}
	most, came, all := eioPoints, 0, 0
	if l.quick {
		most = 2
	}
	for j, p := range d.phases {
		count := sizes[j].counts[kind]
		n := min(most, count)
		for i := range n {
			at := 1 + i*count/n
			struck, err := l.fail(ctx, d, j, kind, at)
			if err != nil {
				return "", fmt.Errorf("%s, %s %d of %d: %w", p.name, kind, at, count, err)
			}
			if all++; struck {
				came++
			}
		}
	}
	if came < (all+1)/2 {
		return "", fmt.Errorf("only %d of %d calls came to fail", came, all)
	}
	return fmt.Sprintf("%d of %d end with an error, and converge; 0 corrupt", came, all), nil
}

// fail carries out d, and has one call in one of its commands fail. It reports whether
// there was such a call.
func (l *lab) fail(ctx context.Context, d operation, in int, kind callKind, at int) (struck bool, err error) {
	s, err := l.stand(ctx, fmt.Sprintf("eio-%s-%d-%s-%d", d.name, in, kind, at), d, false)
	if err != nil {
		return false, err
	}
	defer s.end()
	for j, p := range d.phases {
		if j > in {
			break
		}
		failing := callKind("")
		if j == in {
			failing = kind
		}
		if err := s.disk.failAt(failing, at); err != nil {
			return false, err
		}
		r := s.try(ctx, p.args(s), nil)
		state, err := s.disk.state()
		if err != nil {
			return false, err
		}
		if state.Struck == "" {
			if r.code != 0 {
				return false, fmt.Errorf("it failed by itself: %s", clip(r.stderr, 1000))
			}
			if err := p.done(ctx, s); err != nil {
				return false, err
			}
			continue
		}
		if err := s.judge(ctx, p, r, state); err != nil {
			return true, fmt.Errorf("%s: %w", state.Struck, err)
		}
		return true, nil
	}
	return false, nil
}

// judge looks at a command one of whose calls failed.
func (s *stand) judge(ctx context.Context, p phase, r ended, state diskState) error {
	told := strings.Contains(r.stderr, "input/output error") && strings.Contains(r.stderr, plainName(state.Struck))
	switch {
	case r.code == 0 && (state.Harmless || told): // a warning about what the result does not need
		return p.done(ctx, s)
	case r.code == 0:
		return errors.New("EXIT 0: nobody is told")
	case !strings.Contains(r.stderr, "input/output error"):
		return fmt.Errorf("exit %d does not say what went wrong: %s", r.code, clip(r.stderr, 600))
	case !strings.Contains(r.stderr, plainName(state.Struck)):
		return fmt.Errorf("exit %d does not name the file: %s", r.code, clip(r.stderr, 600))
	}
	if err := errors.Join(s.disk.failAt("", 0), s.disk.forget()); err != nil {
		return err
	}
	if p.whole != nil {
		if err := p.whole(s); err != nil {
			return err
		}
	}
	return s.finish(ctx, p)
}

// naiveEIO lets writes of a naive writer fail.
func naiveEIO(ctx context.Context, l *lab) (string, error) {
	p, found, n := l.naiveOperation().phases[0], 0, l.batch()
	whole, count := "", 0
	for i := range n + 1 {
		s, err := l.naiveStand(ctx, fmt.Sprintf("naive-eio-%d", i))
		if err != nil {
			return "", err
		}
		err = s.disk.failAt(callWrite, i*count/(n+1)) // the first time none
		r := s.try(ctx, p.args(s), nil)
		state, serr := s.disk.state()
		if err := errors.Join(err, serr); err != nil {
			s.end()
			return "", err
		}
		got, herr := hashFile(s.archive())
		if i == 0 {
			whole, count = got, state.Counts[callWrite]
		} else if herr == nil && got != whole {
			found++
		}
		s.end()
		if i == 0 && (r.code != 0 || herr != nil) {
			return "", errors.Join(errors.New(r.String()), herr)
		}
	}
	if found < n/2 {
		return "", fmt.Errorf("half an archive was found %d times in %d errors: the rows above prove little", found, n)
	}
	return fmt.Sprintf("half an archive is found after %d of %d errors", found, n), nil
}
