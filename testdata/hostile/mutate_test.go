package hostile

import (
	"bytes"
	"errors"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/mensylisir/kubexm/bundle"
	"github.com/mensylisir/kubexm/bundle/archive"
)

// mutations changes the true bundle at random, in this process. A change may be
// passed by only where it changes nothing that counts: the root is the true one, and
// what is extracted is, file by file, what the true bundle gives. Else there is a code.
// Some of the changes go through the real command as well.
func (s *site) mutations(t *testing.T) {
	rounds, real := 100, 8
	if *everything {
		rounds, real = 1000, 50
	}
	own, err := os.ReadFile(s.bundle)
	if err != nil {
		t.Fatal(err)
	}
	root, want, err := content(t, s.bundle)
	if err != nil {
		t.Fatal(err)
	}
	cuts := s.cuts(t)
	passed, changed := 0, 0
	for i := range rounds {
		b := mutate(rand.New(rand.NewPCG(uint64(i), 64)), own, cuts)
		if bytes.Equal(b, own) {
			continue
		}
		changed++
		path := filepath.Join(t.TempDir(), "x.tar.zst")
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		gotRoot, got, err := content(t, path)
		_, coded := errors.AsType[archive.Code](err)
		switch {
		case err == nil && (gotRoot != root || !maps.Equal(got, want)):
			t.Errorf("round %d: taken for a bundle, with other content", i)
		case err == nil:
			passed++
		case !coded:
			t.Errorf("round %d: an error without a code: %v", i, err)
		}
		if i < real {
			for _, a := range s.attempts() {
				s.mutated(t, a, path)
			}
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d changes of %d bytes, %d of no account", changed, len(own), passed)
	if changed < rounds*9/10 {
		t.Errorf("only %d of %d rounds changed anything", changed, rounds)
	}
}

// content opens and verifies a bundle and extracts all of it.
func content(t *testing.T, path string) (root string, files map[string]string, err error) {
	t.Helper()
	b, err := bundle.Verify(t.Context(), path, bundle.Policy{AllowUnsigned: true}, 1, nil)
	if err != nil {
		return "", nil, err
	}
	defer b.Close()
	dir := t.TempDir()
	if _, err := b.ExtractLayout(t.Context(), dir, bundle.ExtractOptions{}); err != nil {
		return "", nil, err
	}
	return b.Root.Digest.String(), snapshot(t, dir), os.RemoveAll(dir)
}

// cuts are the places where members begin, and where the last one ends.
func (s *site) cuts(t *testing.T) []int64 {
	t.Helper()
	r, err := archive.Open(s.bundle)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var cuts []int64
	end := int64(0)
	for _, m := range r.Members() {
		cuts, end = append(cuts, m.Offset), m.Offset+m.Length
	}
	return append(cuts, end)
}

// mutated runs the real command, which may pass what reads as the true bundle.
func (s *site) mutated(t *testing.T, a attempt, path string) {
	t.Helper()
	cwd := t.TempDir()
	r := s.run(t, cwd, append(a.args(path, filepath.Join(cwd, "stage")), anybody)...)
	if r.code == 0 || a.name == "install" && r.code == 3 { // it got to calling hosts
		_, got, err := content(t, path)
		_, want, _ := content(t, s.bundle)
		if err != nil && a.name != "extract" || err == nil && !maps.Equal(got, want) {
			t.Errorf("%s: passed what is not the true bundle: %v", a.name, err)
		}
		if stage := filepath.Join(cwd, "stage"); a.stage && !maps.Equal(snapshot(t, stage), want) {
			t.Errorf("%s: extracted other content", a.name)
		}
		s.calls.Store(0)
	} else if codes := r.said(); r.code != 4 || len(codes) == 0 || codes[0] == "" {
		t.Errorf("%s: exit %d with %q\n%.2000s", a.name, r.code, codes, r.stderr)
	}
	s.bounds(t, a, r)
}
