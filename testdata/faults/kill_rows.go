package main

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	kills = 200 // in all
	batch = 10  // in one row
	seed  = 1   // of the points at which they fall
)

// pause is what each answer waits: it stretches a build, so that kills fall into
// every part of it.
const pause = 20 * time.Millisecond

// throttled lets each answer of a handler wait.
type throttled struct {
	next http.Handler
	off  atomic.Bool // no longer
}

func (t *throttled) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !t.off.Load() {
		wait(r.Context(), pause)
	}
	t.next.ServeHTTP(w, r)
}

// killRows kill a build at points that are spread over its length, and a naive
// writer in the same way, to show that the look afterwards finds something.
func killRows() []row {
	var rows []row
	for i := 0; i < kills; i += batch {
		rows = append(rows, row{
			group: "kill", fault: fmt.Sprintf("kills %d to %d of %d", i+1, i+batch, kills), quick: i == kills/2,
			expect: "no half archive, then the same bytes; no half file in the cache",
			run:    func(ctx context.Context, l *lab) (string, error) { return killed(ctx, l, i) },
		})
	}
	return append(rows, row{
		group: "kill", fault: "control: a naive writer", expect: "half an archive is found", quick: true, run: control,
	})
}

// clock says how long a build takes here.
type clock struct {
	once   sync.Once
	length time.Duration
	err    error
}

func killed(ctx context.Context, l *lab, first int) (string, error) {
	length, err := l.length(ctx)
	if err != nil {
		return "", err
	}
	inside, batch := 0, l.batch()
	for i := first; i < first+batch; i++ {
		rng := rand.New(rand.NewPCG(seed, uint64(i))) //nolint:gosec // points in time, always the same
		// Every batch is spread over the whole length.
		point := time.Duration((float64(i-first) + rng.Float64()) / float64(batch) * float64(length))
		ran, err := l.kill(ctx, fmt.Sprintf("kill-%d", i), point)
		if err != nil {
			return "", fmt.Errorf("kill %d, after %s: %w", i+1, point.Round(time.Millisecond), err)
		}
		if ran {
			inside++
		} else {
			length = point // the machine has less to do than it had
		}
	}
	if inside < batch/2 {
		return "", fmt.Errorf("only %d of %d kills came before the build's end", inside, batch)
	}
	return fmt.Sprintf("the same bytes; %d of %d came before the build's end", inside, batch), nil
}

// batch is how many kills one row has.
func (l *lab) batch() int {
	if l.quick {
		return 4
	}
	return batch
}

// length is how long a build takes when it is let be.
func (l *lab) length(ctx context.Context) (time.Duration, error) {
	l.clock.once.Do(func() {
		s, err := l.site(ctx, "length", &throttled{next: l.up})
		if err != nil {
			l.clock.err = err
			return
		}
		defer s.close()
		r := s.run(ctx, s.build(s.archive())...)
		if l.clock.length = r.took; r.code != 0 {
			l.clock.err = errors.New(r.String())
		}
	})
	return l.clock.length, l.clock.err
}

// kill kills one build, looks at what it left, and builds again. It tells
// whether the build still ran.
func (l *lab) kill(ctx context.Context, name string, point time.Duration) (ran bool, err error) {
	slow := &throttled{next: l.up}
	s, err := l.site(ctx, name, slow)
	if err != nil {
		return false, err
	}
	defer s.close()
	if ran, err = stopAfter(s.command(ctx, s.binary, s.build(s.archive())), point); err != nil {
		return ran, err
	}
	if err := s.inspect(); err != nil {
		return ran, err
	}
	slow.off.Store(true)
	if r := s.run(ctx, s.build(s.archive())...); r.code != 0 {
		return ran, fmt.Errorf("run again: %s", r)
	}
	return ran, errors.Join(s.same(s.archive()), onlyIn(s.out, "bundle.tar.zst"), wholeCache(s.cache))
}

// stopAfter runs c and kills it after d. It reports whether it still ran.
func stopAfter(c *exec.Cmd, d time.Duration) (bool, error) {
	if err := c.Start(); err != nil {
		return false, err
	}
	timer := time.AfterFunc(d, func() { _ = c.Process.Kill() }) // it may have ended
	defer timer.Stop()
	err := c.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return false, err
	}
	if err != nil && exit.Exited() {
		return false, fmt.Errorf("it failed by itself: %w", err)
	}
	return err != nil, nil
}

// inspect says what is wrong with what a killed process left: something under
// the final name that is not whole, or a cached file that is not what its name
// says.
func (s *site) inspect() error {
	if exists(s.archive()) {
		if err := s.same(s.archive()); err != nil {
			return fmt.Errorf("HALF AN ARCHIVE: %w", err)
		}
	}
	return wholeCache(s.cache)
}

// wholeCache compares every file of a cache with its name.
func wholeCache(cache string) error {
	files, err := filepath.Glob(filepath.Join(cache, "sha256", "*", "*"))
	if err != nil {
		return err
	}
	for _, f := range files {
		if got, err := hashFile(f); err != nil || got != filepath.Base(f) {
			return fmt.Errorf("HALF A FILE IN THE CACHE: %s has %s: %w", f, got, err)
		}
	}
	return nil
}

// control kills the naive writer as often as one batch kills a build.
func control(ctx context.Context, l *lab) (string, error) {
	found, batch := 0, l.batch()
	length := time.Duration(0)
	for i := range batch + 1 {
		s, err := l.site(ctx, fmt.Sprintf("naive-%d", i), &throttled{next: l.up})
		if err != nil {
			return "", err
		}
		args := l.naiveArgs(s)
		begin := time.Now()
		point := time.Hour
		if i > 0 { // the first is let be, and says how long it takes
			point = time.Duration((float64(i) - 0.5) / float64(batch) * float64(length))
		}
		_, err = stopAfter(s.command(ctx, l.self, args), point)
		if i == 0 {
			length = time.Since(begin)
		} else if s.inspect() != nil {
			found++
		}
		s.close()
		if err != nil {
			return "", err
		}
	}
	if found < batch/2 {
		return "", fmt.Errorf("half an archive was found %d times in %d kills: the rows above prove little", found, batch)
	}
	return fmt.Sprintf("half an archive is found after %d of %d kills", found, batch), nil
}

// naiveArgs has this program write what a build of s would.
func (l *lab) naiveArgs(s *site) []string {
	args := []string{naiveName, s.server.URL, s.archive()}
	for _, a := range l.pinned.Artifacts {
		args = append(args, "/"+strings.TrimPrefix(a.Address, "https://"))
	}
	return args
}

// naiveName makes this program a naive writer: SERVER OUTPUT PATH….
const naiveName = "write-naively"

// naive writes what it downloads to the final name, as a build must not.
func naive(args []string) int {
	if len(args) < 3 {
		return 2
	}
	if err := writeNaively(args[0], args[1], args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func writeNaively(base, path string, from []string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	w := tar.NewWriter(f)
	client := &http.Client{Timeout: time.Minute}
	for _, at := range from {
		resp, err := client.Get(base + at)
		if err != nil {
			return err
		}
		err = errors.Join(w.WriteHeader(&tar.Header{Name: at[1:], Mode: 0o644, Size: resp.ContentLength}), copyAll(w, resp.Body), resp.Body.Close())
		if err != nil {
			return err
		}
	}
	return errors.Join(w.Close(), f.Close())
}

func copyAll(w io.Writer, r io.Reader) error {
	_, err := io.Copy(w, r)
	return err
}
