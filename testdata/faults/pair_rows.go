package main

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// pairRows are two builds at once on one cache.
func pairRows() []row {
	return []row{
		{group: "pair", fault: "two builds with --keep-cache, one cache", expect: "the same bytes twice, each file fetched once", quick: true, run: twoOutputs},
		{group: "pair", fault: "two builds, one cache, one output", expect: "the same bytes; the second waits, or is refused and says why", quick: true, run: oneOutput},
		{group: "pair", fault: "two builds, one cache, one of them killed", expect: "the same bytes from the other", quick: true, run: oneKilled},
	}
}

// tally counts the bytes sent for each path, and lets each answer take a while:
// two builds that begin together then meet.
type tally struct {
	next http.Handler
	mu   sync.Mutex
	sent map[string]int64
}

func (t *tally) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	wait(r.Context(), 20*time.Millisecond)
	t.next.ServeHTTP(&counted{ResponseWriter: w, t: t, at: r.URL.Path}, r)
}

type counted struct {
	http.ResponseWriter
	t  *tally
	at string
}

func (c *counted) Write(p []byte) (int, error) {
	n, err := c.ResponseWriter.Write(p)
	c.t.mu.Lock()
	defer c.t.mu.Unlock()
	c.t.sent[c.at] += int64(n)
	return n, err
}

// pair is a site with a tally.
func (l *lab) pair(ctx context.Context, name string) (*site, *tally, error) {
	t := &tally{next: l.up, sent: map[string]int64{}}
	s, err := l.site(ctx, name, t)
	return s, t, err
}

func twoOutputs(ctx context.Context, l *lab) (string, error) {
	s, t, err := l.pair(ctx, "two-outputs")
	if err != nil {
		return "", err
	}
	defer s.close()
	var g errgroup.Group
	for _, name := range []string{"one", "two"} {
		g.Go(func() error {
			path := filepath.Join(s.out, name)
			if r := s.run(ctx, s.build(path, "--keep-cache")...); r.code != 0 {
				return fmt.Errorf("%s: %s", name, r)
			}
			return s.same(path)
		})
	}
	if err := g.Wait(); err != nil {
		return "", err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	files := 0
	for at, c := range l.up.Counts() {
		if sent := t.sent[at]; sent > 0 && c.Size > 0 && !strings.Contains(at, "/manifests/") { // who has a small document asks anew anyway
			files++
			if sent > c.Size {
				return "", fmt.Errorf("FETCHED AGAIN: %s: %d bytes sent, it has %d", at, sent, c.Size)
			}
		}
	}
	return fmt.Sprintf("the same bytes twice, %d files fetched once", files), onlyIn(s.out, "one", "two")
}

func oneOutput(ctx context.Context, l *lab) (string, error) {
	s, _, err := l.pair(ctx, "one-output")
	if err != nil {
		return "", err
	}
	defer s.close()
	var ran [2]ended
	var wg sync.WaitGroup
	for i := range ran {
		wg.Go(func() { ran[i] = s.run(ctx, s.build(s.archive())...) })
	}
	wg.Wait()
	came := "both succeed"
	for i, r := range ran {
		switch {
		case r.code == 0:
		case ran[1-i].code != 0:
			return r.String(), fmt.Errorf("neither succeeds: %s", ran[1-i])
		case r.code != 1 || r.why() == "":
			return r.String(), fmt.Errorf("exit %d without a word", r.code)
		default:
			came = "one succeeds, the other: " + r.String()
		}
	}
	if err := s.same(s.archive()); err != nil {
		return came, err
	}
	return came, onlyIn(s.out, "bundle.tar.zst")
}

func oneKilled(ctx context.Context, l *lab) (string, error) {
	s, _, err := l.pair(ctx, "one-killed")
	if err != nil {
		return "", err
	}
	defer s.close()
	first := s.command(ctx, s.binary, s.build(filepath.Join(s.out, "one")))
	if err := first.Start(); err != nil {
		return "", err
	}
	kill := time.AfterFunc(400*time.Millisecond, func() { _ = first.Process.Kill() }) // it may have ended
	defer kill.Stop()
	r := s.run(ctx, s.build(s.archive())...)
	_ = first.Wait() // it was killed
	if r.code != 0 {
		return r.String(), fmt.Errorf("exit %d", r.code)
	}
	return "the same bytes", s.same(s.archive())
}
