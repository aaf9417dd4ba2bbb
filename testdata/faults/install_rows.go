package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/mensylisir/kubexm/steps/connector"
)

// Kills of an installation and of a deletion, in all and in one row.
const (
	installKills = 200
	installBatch = 10
)

// installRows kill kubexm while it installs and while it deletes, at each boundary
// of a step and at moments that are spread over its length. Hosts go on by
// themselves meanwhile.
func installRows() []row {
	const after = "converges in 1 re-run; no half-written file; no control plane made twice"
	var rows []row
	for i := 0; i < installKills; i += installBatch {
		rows = append(rows, row{
			group: "install", fault: fmt.Sprintf("kills %d to %d of %d", i+1, i+installBatch, installKills), expect: after, quick: i == installKills/2,
			run: func(ctx context.Context, l *lab) (string, error) { return l.killedInstalls(ctx, i) },
		})
	}
	for part := range boundaryRows {
		rows = append(rows, row{
			group: "install", fault: fmt.Sprintf("killed at each boundary of a step, part %d of %d", part+1, boundaryRows), expect: after, quick: part == 0,
			run: func(ctx context.Context, l *lab) (string, error) { return l.killedAtBoundaries(ctx, part) },
		})
	}
	return append(rows, row{
		group: "install", fault: "control: not run again, made twice, half a file", expect: "each is found", quick: true,
		run: installControl,
	})
}

// installControl lets happen what must not, to show that it would be found.
func installControl(ctx context.Context, l *lab) (string, error) {
	m, err := l.model(ctx)
	if err != nil {
		return "", err
	}
	g, err := l.halfInstalled(ctx, m.install/2)
	if err != nil {
		return "", err
	}
	defer g.close()
	if g.made(ctx) == nil {
		return "", errors.New("half an installation is taken for a whole one")
	}
	if err := errors.Join(g.again(ctx, g.install()), g.made(ctx)); err != nil {
		return "", err
	}
	for what, do := range map[string]struct {
		harm func()
		look func() error
	}{
		"a file that was not whole": {func() { g.hosts["w1"].sim.AddFile("/etc/.hosts.kubexm-new", "half", 0o600) }, g.leftovers},
		"an empty file in the workdir": {func() { _ = os.Truncate(filepath.Join(g.workdir, ".kubexm", "demo", "kubeconfig"), 0) },
			func() error { return g.filed(m) }},
		"a second kubeadm init": {func() {
			_, _ = g.hosts["m1"].sim.Exec(ctx, connector.Cmd{Argv: []string{"kubeadm", "init"}}) // it refuses, and was asked
		}, g.sound},
	} {
		if err := do.look(); err != nil {
			return "", fmt.Errorf("before %s: %w", what, err)
		}
		do.harm()
		if do.look() == nil {
			return "", fmt.Errorf("%s is not found", what)
		}
	}
	return "each is found", nil
}

// halfInstalled gives hosts of an installation that was stopped within. The machine
// may be faster than when it was measured how long one takes: then it is stopped earlier.
func (l *lab) halfInstalled(ctx context.Context, after time.Duration) (*clusterSite, error) {
	for try := range 8 {
		g, err := l.clusterSite(ctx, fmt.Sprintf("install-control-%d", try+1))
		if err != nil {
			return nil, err
		}
		ran, err := stopAfter(g.command(ctx, g.binary, g.install()), after)
		if err != nil {
			g.close()
			return nil, err
		}
		if ran {
			return g, nil
		}
		g.close()
		after /= 2
	}
	return nil, errors.New("no installation could be stopped before its end")
}

// boundaryRows is into how many rows the boundaries are dealt.
const boundaryRows = 8

// moment gives the i-th of n moments of a length, always the same.
func moment(i, n int, length time.Duration, salt uint64) time.Duration {
	rng := rand.New(rand.NewPCG(seed+salt, uint64(i))) //nolint:gosec // points in time, always the same
	return time.Duration((float64(i%n) + rng.Float64()) / float64(n) * float64(length))
}

func (l *lab) killedInstalls(ctx context.Context, first int) (string, error) {
	m, err := l.model(ctx)
	if err != nil {
		return "", err
	}
	n := installBatch
	if l.quick {
		n = 2
	}
	during, pace := 0, 1.0
	at := func(i int, length time.Duration, salt uint64) time.Duration {
		return time.Duration(pace * float64(moment(i, n, length, salt)))
	}
	for i := first; i < first+n; i++ {
		name := fmt.Sprintf("install-kill-%d", i)
		ran, err := l.killedBoth(ctx, name, killer{
			install: func(g *clusterSite) (bool, error) {
				return stopAfter(g.command(ctx, g.binary, g.install()), at(i, m.install, 0))
			},
			destroy: func(g *clusterSite) (bool, error) {
				return stopAfter(g.command(ctx, g.binary, g.destroy()), at(i, m.destroy, 1000))
			},
		})
		if err != nil {
			return "", fmt.Errorf("kill %d: %w", i+1, err)
		}
		if during += ran; ran < 2 {
			pace *= 0.6 // the machine has less to do than it had
		}
	}
	if during < n/2 {
		return "", fmt.Errorf("only %d of %d kills came before the end", during, 2*n)
	}
	return fmt.Sprintf("converges; %d of %d kills of installs and deletes came before the end", during, 2*n), nil
}

// killer interrupts each command once, and reports whether it still ran.
type killer struct {
	install, destroy func(g *clusterSite) (bool, error)
}

// killedBoth installs and deletes, each interrupted once and then run again, and
// compares the hosts after each.
func (l *lab) killedBoth(ctx context.Context, name string, k killer) (during int, err error) {
	g, err := l.clusterSite(ctx, name)
	if err != nil {
		return 0, err
	}
	defer g.close()
	count := func(ran bool, err error) error {
		if ran {
			during++
		}
		return err
	}
	if err := count(k.install(g)); err != nil {
		return during, fmt.Errorf("install: %w", err)
	}
	if err := errors.Join(g.again(ctx, g.install()), g.made(ctx)); err != nil {
		return during, fmt.Errorf("install: %w", err)
	}
	if err := count(k.destroy(g)); err != nil {
		return during, fmt.Errorf("delete: %w", err)
	}
	if err := errors.Join(g.again(ctx, g.destroy()), g.gone()); err != nil {
		return during, fmt.Errorf("delete: %w", err)
	}
	return during, nil
}

func (l *lab) killedAtBoundaries(ctx context.Context, part int) (string, error) {
	m, err := l.model(ctx)
	if err != nil {
		return "", err
	}
	step := boundaryRows
	if l.quick {
		step *= 15
	}
	kills := 0
	for n := 1 + part; n <= max(len(m.events), len(m.undoing)); n += step {
		at := func(i int, _ event, kill func()) {
			if i == n {
				kill()
			}
		}
		boundary := func(args func(...string) []string) func(g *clusterSite) (bool, error) {
			return func(g *clusterSite) (bool, error) {
				r, _ := g.follow(ctx, args("-o", "json"), at)
				if r.code > 0 {
					return false, fmt.Errorf("it failed by itself: %s", clip(r.stderr, 800))
				}
				return r.code != 0, nil
			}
		}
		ran, err := l.killedBoth(ctx, fmt.Sprintf("boundary-%d", n), killer{
			install: func(g *clusterSite) (bool, error) { return boundary(g.install)(g) },
			destroy: func(g *clusterSite) (bool, error) { return boundary(g.destroy)(g) },
		})
		if err != nil {
			return "", fmt.Errorf("at event %d (%s; %s): %w", n, nth(m.events, n), nth(m.undoing, n), err)
		}
		kills += ran
	}
	return fmt.Sprintf("converges after %d kills", kills), nil
}

func nth(all []event, n int) string {
	if n > len(all) {
		return "none"
	}
	e := all[n-1]
	return strings.Join([]string{e.Outcome, e.Node, "on", e.Host}, " ")
}
