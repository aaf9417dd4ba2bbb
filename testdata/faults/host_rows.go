package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// blow is something that hits an installation or a deletion from outside.
type blow struct {
	name  string
	count int // how often it is tried, at other moments each time
	batch int // in one row
	quick bool
	waits bool
	// strike arms it on a site: the i-th of n.
	strike func(g *clusterSite, i, n int, deletes bool)
	// says is what the interrupted command prints where it fails; empty: anything
	says string
	// within is how long a connection may be silent until kubexm gives it up; 0: nobody asks
	within time.Duration
}

// mostSilence is how long a connection may say nothing before it counts as lost.
const mostSilence = 30 * time.Second

func hostRows() []row {
	var rows []row
	for _, b := range []blow{
		{name: "a host loses its power", count: 50, batch: 5, quick: true, strike: losePower},
		{name: "a host loses its power within kubeadm", count: 20, batch: 5, strike: losePowerInKubeadm},
		{name: "a command on a host is killed", count: 50, batch: 5, strike: killCommand},
		{name: "the connection is cut", count: 50, batch: 5, quick: true, strike: onConnection(cut)},
		{name: "the connection is reset", count: 50, batch: 5, strike: onConnection(reset)},
		{name: "the connection goes silent", count: 12, batch: 1, waits: true, strike: onConnection(stall), within: mostSilence},
		{name: "the registry is restarted while it is filled", count: 10, batch: 5, strike: restartRegistry},
		{name: "the disk of a host is full", count: 30, batch: 5, quick: true, strike: fillDisk, says: "No space left on device"},
	} {
		for first := 0; first < b.count; first += b.batch {
			rows = append(rows, row{
				group: "hosts", fault: fmt.Sprintf("%s, %d to %d of %d", b.name, first+1, first+b.batch, b.count),
				expect: "converges in 1 re-run at most; no half-written file; no control plane made twice",
				quick:  b.quick && first == 0, waits: b.waits,
				run: func(ctx context.Context, l *lab) (string, error) { return b.run(ctx, l, first) },
			})
		}
	}
	return rows
}

// run strikes a batch of installations and deletions.
func (b blow) run(ctx context.Context, l *lab, first int) (string, error) {
	n := b.batch
	if l.quick {
		n = 1
	}
	if _, err := l.model(ctx); err != nil {
		return "", err
	}
	failed := 0
	var silent time.Duration
	for i := first; i < first+n; i++ {
		at, err := l.clusterSite(ctx, fmt.Sprintf("blow-%s-%d", b.name, i))
		if err != nil {
			return "", err
		}
		f, err := b.hit(ctx, at, i)
		silent = max(silent, at.silent)
		at.close()
		if err != nil {
			return "", fmt.Errorf("number %d: %w", i+1, err)
		}
		failed += f
	}
	came := fmt.Sprintf("converges; %d of %d commands failed, and were run again", failed, 2*n)
	if b.within > 0 {
		if silent == 0 {
			return came, errors.New("no connection was given up")
		}
		came += fmt.Sprintf("; given up after %.1f s of silence at most", silent.Seconds())
	}
	return came, nil
}

func (b blow) hit(ctx context.Context, g *clusterSite, i int) (failed int, err error) {
	for _, deletes := range []bool{false, true} {
		what, args, look := "install", g.install, func() error { return g.made(ctx) }
		if deletes {
			what, args, look = "delete", g.destroy, g.gone
		}
		b.strike(g, i, b.count, deletes)
		r := g.run(ctx, args()...)
		if err := g.hush(b.within); err != nil {
			return failed, fmt.Errorf("%s: %w", what, err)
		}
		g.calm()
		if r.code != 0 {
			failed++
			if b.says != "" && !strings.Contains(r.stderr, b.says) {
				return failed, fmt.Errorf("%s: exit %d does not say %q: %s", what, r.code, b.says, clip(r.stderr, 800))
			}
			if err := g.again(ctx, args()); err != nil {
				return failed, fmt.Errorf("%s: first %s: then %w", what, clip(r.stderr, 500), err)
			}
		}
		if err := look(); err != nil {
			return failed, fmt.Errorf("%s: exit %d, %s: %w", what, r.code, clip(r.stderr, 500), err)
		}
	}
	return failed, nil
}

// hush says which connection was silent for longer than it may be until kubexm gave it
// up; that a process ended does so too.
func (g *clusterSite) hush(most time.Duration) error {
	if most == 0 {
		return nil
	}
	for _, n := range g.names {
		for _, d := range g.hosts[n].wire.noticed() {
			if g.silent = max(g.silent, d); d > most {
				return fmt.Errorf("SILENT FOR TOO LONG: the connection to %s was given up after %s", n, d.Round(time.Millisecond))
			}
		}
	}
	return nil
}

// calm ends every blow.
func (g *clusterSite) calm() {
	for _, h := range g.hosts {
		h.onStrike(nil)
		h.fill(false)
		h.wire.plug()
		h.wire.strikeAfter(0, nil)
		h.wire.each(cut)
	}
	g.reg.OnUpload(nil)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.part = nil
}

// commands is how many commands the hosts were given when nothing disturbed, so
// that blows fall on all of them.
func (g *clusterSite) commands(name string, deletes bool) int {
	m := g.models.model
	if deletes {
		return m.undoes[name]
	}
	return m.does[name]
}

// chance is always the same for the same blow.
func chance(i int, salt uint64) *rand.Rand {
	return rand.New(rand.NewPCG(seed+salt, uint64(i))) //nolint:gosec // what is tried, always the same
}

func pickHost(g *clusterSite, rng *rand.Rand) *host { return g.hosts[g.names[rng.IntN(len(g.names))]] }

// onCommand does something on one host at one of its commands.
func onCommand(salt uint64, do func(g *clusterSite, h *host, rng *rand.Rand)) func(*clusterSite, int, int, bool) {
	return func(g *clusterSite, i, n int, deletes bool) {
		rng := chance(i, salt)
		if deletes {
			rng = chance(i, salt+1)
		}
		h := pickHost(g, rng)
		target := 1 + int((float64(i)+rng.Float64())/float64(n)*float64(g.commands(h.name, deletes)))
		h.onStrike(func(at int) {
			if at == target {
				do(g, h, rng)
			}
		})
	}
}

var losePower = onCommand(10, func(_ *clusterSite, h *host, rng *rand.Rand) {
	go h.powerCycle(rng.IntN, loses(rng))
	time.Sleep(5 * time.Millisecond) // until it is off
})

// loses is which files that nobody synced lose their content: none, all, or each by
// chance.
func loses(rng *rand.Rand) func() bool {
	switch rng.IntN(3) {
	case 0:
		return func() bool { return false }
	case 1:
		return func() bool { return true }
	}
	return func() bool { return rng.IntN(2) == 0 }
}

// losePowerInKubeadm takes it between two parts of kubeadm's work.
func losePowerInKubeadm(g *clusterSite, i, n int, deletes bool) {
	rng := chance(i, 20)
	parts := g.models.model.parts
	if deletes {
		parts = g.models.model.unparts
	}
	target := parts[i*len(parts)/n]
	g.mu.Lock()
	defer g.mu.Unlock()
	done := false
	g.part = func(host, part string) {
		if g.mu.Lock(); done || host+" "+part != target {
			g.mu.Unlock()
			return
		}
		done = true
		g.mu.Unlock()
		go g.hosts[host].powerCycle(rng.IntN, loses(rng))
		time.Sleep(5 * time.Millisecond) // until it is off
	}
}

var killCommand = onCommand(30, func(_ *clusterSite, h *host, _ *rand.Rand) { h.end("") })

// onConnection does something to a connection after so many bytes.
func onConnection(how func(*pair)) func(*clusterSite, int, int, bool) {
	return func(g *clusterSite, i, n int, deletes bool) {
		rng := chance(i, 40)
		h := pickHost(g, rng)
		all := g.models.model.bytes[h.name]
		if deletes {
			all = g.models.model.unbytes[h.name]
		}
		h.wire.strikeAfter(1+int64((float64(i)+rng.Float64())/float64(n)*float64(all)), how)
	}
}

// restartRegistry restarts it at one of the uploads.
func restartRegistry(g *clusterSite, i, n int, _ bool) {
	target := 1 + i*g.models.model.puts/n
	g.reg.OnUpload(func(at int) {
		if at == target {
			g.reg.Restart()
		}
	})
}

var fillDisk = onCommand(50, func(_ *clusterSite, h *host, _ *rand.Rand) { h.fill(true) })
