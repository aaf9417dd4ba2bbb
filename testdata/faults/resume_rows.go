package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// resumeRows kill kubexm and go on with --resume.
func resumeRows() []row {
	rows := []row{{
		group: "resume", fault: "another config, bundle or command in between", quick: true,
		expect: "says so, and looks at every step", run: resumesNothing,
	}}
	const n = 40
	for first := 0; first < n; first += installBatch {
		rows = append(rows, row{
			group: "resume", fault: fmt.Sprintf("kills %d to %d of %d, then --resume", first+1, first+installBatch, n), quick: first == n/2,
			expect: "passes over what was seen done; the same hosts; then the same without --resume",
			run:    func(ctx context.Context, l *lab) (string, error) { return l.resumed(ctx, first) },
		})
	}
	return rows
}

// resumed kills installations and deletions, resumes them, and lets one that looks
// at everything say that nothing is left to do.
func (l *lab) resumed(ctx context.Context, first int) (string, error) {
	m, err := l.model(ctx)
	if err != nil {
		return "", err
	}
	n := installBatch
	if l.quick {
		n = 1
	}
	passed := 0
	for i := first; i < first+n; i++ {
		g, err := l.clusterSite(ctx, fmt.Sprintf("resume-%d", i))
		if err != nil {
			return "", err
		}
		p, err := g.resumeBoth(ctx, i, n, m)
		g.close()
		if err != nil {
			return "", fmt.Errorf("number %d: %w", i+1, err)
		}
		passed += p
	}
	if passed == 0 && !l.quick {
		return "", errors.New("nothing was passed over")
	}
	return fmt.Sprintf("the same hosts; %d steps were passed over in %d resumed runs", passed, 2*n), nil
}

func (g *clusterSite) resumeBoth(ctx context.Context, i, of int, m *model) (passed int, err error) {
	if _, err := stopAfter(g.command(ctx, g.binary, g.install()), moment(i, of, m.install, 2000)); err != nil {
		return 0, err
	}
	p, err := g.resume(ctx, g.install())
	if err != nil {
		return 0, fmt.Errorf("install: %w", err)
	}
	if err := g.made(ctx); err != nil {
		return 0, fmt.Errorf("install: %w", err)
	}
	r, events := g.follow(ctx, g.install("-o", "json"), nil)
	for _, e := range events {
		if e.Outcome == "ran" && !strings.HasSuffix(e.Node, "mint-token") {
			return 0, fmt.Errorf("after the resumed installation there was something to do: %s on %s", e.Node, e.Host)
		}
	}
	if r.code != 0 {
		return 0, fmt.Errorf("install again: %s", clip(r.stderr, 500))
	}
	if _, err := stopAfter(g.command(ctx, g.binary, g.destroy()), moment(i, of, m.destroy, 3000)); err != nil {
		return 0, err
	}
	q, err := g.resume(ctx, g.destroy())
	if err != nil {
		return 0, fmt.Errorf("delete: %w", err)
	}
	return p + q, errors.Join(g.gone())
}

// resume runs a command again with --resume, and tells how many steps it passed over.
func (g *clusterSite) resume(ctx context.Context, args []string) (passed int, err error) {
	for _, h := range g.hosts {
		if err := h.quiet(ctx); err != nil {
			return 0, err
		}
	}
	r, events := g.follow(ctx, append(args, "--resume", "-o", "json"), nil)
	if r.code != 0 {
		return 0, fmt.Errorf("resume: exit %d: %s", r.code, clip(r.stderr, 1500))
	}
	for _, e := range events {
		if e.Outcome == "resumed" {
			passed++
		}
	}
	return passed, g.sound()
}

// resumesNothing resumes where the journal is about something else.
func resumesNothing(ctx context.Context, l *lab) (string, error) {
	g, err := l.clusterSite(ctx, "resume-nothing")
	if err != nil {
		return "", err
	}
	defer g.close()
	refuses := func(args []string, why string) error {
		for _, h := range g.hosts {
			if err := h.quiet(ctx); err != nil {
				return err
			}
		}
		r := g.run(ctx, append(args, "--resume")...)
		if r.code != 0 || !strings.Contains(r.stderr, why) || !strings.Contains(r.stderr, "not resumed") {
			return fmt.Errorf("exit %d, and does not say %q: %s", r.code, why, clip(r.stderr, 800))
		}
		return nil
	}
	// By a step, not by time: a config that differs from that of an existing cluster is refused otherwise.
	stopped, _ := g.follow(ctx, g.install("-o", "json"), func(_ int, e event, kill func()) {
		if strings.HasSuffix(e.Node, "/kubeadm.install") {
			kill()
		}
	})
	if stopped.code == 0 {
		return "", errors.New("the installation was not killed in time")
	}
	if err := g.rewrite("maxPods: 99"); err != nil {
		return "", err
	}
	if err := refuses(g.install(), "the config has changed"); err != nil {
		return "", err
	}
	// By its first step, not by time: a deletion that has reset the first master is refused otherwise.
	if r, _ := g.follow(ctx, g.destroy("-o", "json"), func(_ int, _ event, kill func()) { kill() }); r.code == 0 {
		return "", errors.New("the deletion was not killed in time")
	}
	if err := refuses(g.install(), "the last run was a delete"); err != nil {
		return "", err
	}
	return "says what is another, and looks at every step", errors.Join(g.again(ctx, g.destroy()), g.gone())
}
