package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"
)

// manyKills is how often builds are killed.
const manyKills = 50

// cutRows kill one and the same build again and again, and then another.
func cutRows() []row {
	return []row{{
		group: "cut", fault: fmt.Sprintf("builds, each killed again and again, %d times in all", manyKills), quick: true,
		expect: "no complete blob is requested twice; the same bytes", run: cutAgain,
	}}
}

// witness records requests for what the unfinished archive already has.
type witness struct {
	next  http.Handler
	paths map[string]string // sha256 in hex → path of a file

	mu    sync.Mutex
	have  map[string]bool // paths
	again []string
}

func (w *witness) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	if at := blobPath(r.URL.Path); w.have[at] && r.Method == http.MethodGet {
		w.again = append(w.again, r.URL.Path)
	}
	w.mu.Unlock()
	wait(r.Context(), 3*pause) // many kills come before the end then
	w.next.ServeHTTP(out, r)
}

// blobPath is what a request asks for: layers have the same digest in each repository.
func blobPath(path string) string {
	if _, digest, ok := strings.Cut(path, "/blobs/"); ok && strings.HasPrefix(path, "/v2/") {
		return digest
	}
	return path
}

// note reads the journal of an unfinished archive.
func (w *witness) note(path string) error {
	f, err := os.Open(path + ".partial.journal")
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	w.mu.Lock()
	defer w.mu.Unlock()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var l struct {
			Digest string `json:"digest"`
			Prefix *int64 `json:"prefix"`
		}
		if json.Unmarshal(lines.Bytes(), &l) == nil && l.Digest != "" && l.Prefix == nil {
			w.have[l.Digest] = true
			if at := w.paths[strings.TrimPrefix(l.Digest, "sha256:")]; at != "" {
				w.have[at] = true
			}
		}
	}
	return nil
}

func cutAgain(ctx context.Context, l *lab) (string, error) {
	n, came, had, builds := manyKills, 0, 0, 0
	if l.quick {
		n = 5
	}
	rng := rand.New(rand.NewPCG(seed, 7)) //nolint:gosec // points in time, always the same
	for ; came < n && builds < n; builds++ {
		kills, complete, err := l.cutOne(ctx, fmt.Sprintf("cut-%d", builds), n-came, rng)
		if err != nil {
			return "", fmt.Errorf("build %d: %w", builds+1, err)
		}
		came, had = came+kills, had+complete
	}
	if came < n || had < 10*builds {
		return "", fmt.Errorf("%d kills of %d builds, before the last of which %d blobs were complete: this tries nothing", came, builds, had)
	}
	return fmt.Sprintf("the same bytes after %d kills of %d builds; %d blobs were complete before the last ones, and none came again", came, builds, had), nil
}

// cutOne kills one build at most so many times, and then lets it end. It returns how often it
// was killed, and how many blobs were complete before the last time.
func (l *lab) cutOne(ctx context.Context, name string, most int, rng *rand.Rand) (kills, complete int, err error) {
	length, err := l.length(ctx)
	if err != nil {
		return 0, 0, err
	}
	w := &witness{next: l.up, paths: map[string]string{}, have: map[string]bool{}}
	for _, a := range l.pinned.Artifacts {
		w.paths[a.SHA256] = "/" + strings.TrimPrefix(a.Address, "https://")
		for _, m := range a.Members {
			if m.Address != "" {
				w.paths[m.SHA256] = "/" + strings.TrimPrefix(m.Address, "https://")
			}
		}
	}
	s, err := l.site(ctx, name, w)
	if err != nil {
		return 0, 0, err
	}
	defer s.close()
	for kills < most {
		point := time.Duration((0.4 + 0.5*rng.Float64()) * float64(length))
		ran, err := stopAfter(s.command(ctx, s.binary, s.build(s.archive())), point)
		if err != nil {
			return 0, 0, err
		}
		if !ran {
			break
		}
		kills++
		if err := errors.Join(s.inspect(), w.note(s.archive())); err != nil {
			return 0, 0, err
		}
		complete = len(w.have)
	}
	if r := s.run(ctx, s.build(s.archive())...); r.code != 0 {
		return 0, 0, fmt.Errorf("run again: %s", r)
	}
	if err := errors.Join(s.same(s.archive()), onlyIn(s.out, "bundle.tar.zst"), wholeCache(s.cache)); err != nil {
		return 0, 0, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.again) > 0 {
		return 0, 0, fmt.Errorf("REQUESTED AGAIN: %d complete blobs, such as %s", len(w.again), w.again[0])
	}
	return kills, complete, nil
}
