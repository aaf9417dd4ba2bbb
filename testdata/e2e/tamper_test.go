package e2e

import (
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// place is one byte of an archive, and what the finding has to name: the blob or
// the document that it lies in, if any.
type place struct {
	name string
	at   int64
	blob string // sha256 in hex, a document's name, or "" between the members
}

// places picks bytes all over an archive: of every member of the head, of the
// slot, of stored and compressed blobs, of the index and of the trailer.
func places(t *testing.T, file string) []place {
	t.Helper()
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	var list []place
	stored, compressed, head, end := 0, 0, 0, int64(0)
	slot := false
	for _, m := range members(t, file) {
		end = max(end, m.Offset+m.Length)
		blob := path.Base(m.Name) // of a blob this is its sha256
		add := func(what string, at int64) { list = append(list, place{what + " of " + m.Name, at, blob}) }
		middle := m.Offset + m.Length/4 + rng.Int64N(m.Length/2)
		switch kind := &stored; {
		case m.Digest == "":
			slot = true
			add("first byte", m.Offset)
			add("middle", middle)
			add("last byte", m.Offset+m.Length-1)
			continue
		case !slot:
			if head++; head <= 8 {
				add("middle", middle)
			}
			continue
		case !m.Stored():
			kind = &compressed
			fallthrough
		default:
			if *kind++; *kind > 4 {
				continue
			}
			add("first byte", m.Offset)
			add("middle", middle)
			add("last byte", m.Offset+m.Length-1)
		}
	}
	if head < 5 || stored < 4 || compressed < 4 || !slot {
		t.Fatalf("%d members in the head, %d stored, %d compressed, slot %v", head, stored, compressed, slot)
	}
	for i := range int64(5) {
		list = append(list, place{"end, index and trailer", end + (info.Size()-end-1)*i/4, ""})
	}
	return list
}

func TestOneChangedByteIsFound(t *testing.T) {
	s := newSite(t, 0.02)
	file := filepath.Join(s.newFolder(t, "out"), "bundle.tar.zst")
	s.must(t, s.build(file, filepath.Join(s.dir, "cache"))...)
	s.must(t, "bundle", "verify", "--allow-unsigned", file)
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all := places(t, file)
	if len(all) < 40 {
		t.Errorf("only %d places", len(all))
	}
	for i, p := range all {
		flip(t, f, p.at, 1<<(i%8))
		r := s.run(t, []string{"bundle", "verify", "--allow-unsigned", file})
		flip(t, f, p.at, 1<<(i%8))
		switch {
		case r.code != 4:
			t.Errorf("%s, byte %d: exit %d, want 4\n%s%s", p.name, p.at, r.code, r.stdout, r.stderr)
		case !strings.Contains(r.stderr, p.blob):
			t.Errorf("%s, byte %d: the blob is not named:\n%s", p.name, p.at, r.stderr)
		}
	}
	s.must(t, "bundle", "verify", "--allow-unsigned", file)
}

// flip changes the bits of mask in one byte; twice is not at all.
func flip(t *testing.T, f *os.File, at int64, mask byte) {
	t.Helper()
	b := make([]byte, 1)
	if _, err := f.ReadAt(b, at); err != nil {
		t.Fatal(err)
	}
	b[0] ^= mask
	if _, err := f.WriteAt(b, at); err != nil {
		t.Fatal(err)
	}
}

func TestCutAndLongArchivesAreRefused(t *testing.T) {
	s := newSite(t, 0.005)
	out := s.newFolder(t, "out")
	path := filepath.Join(out, "bundle.tar.zst")
	s.must(t, s.build(path, filepath.Join(s.dir, "cache"))...)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	bad := filepath.Join(out, "bad.tar.zst")
	for name, b := range map[string][]byte{
		"empty":        nil,
		"one byte":     whole[:1],
		"half":         whole[:len(whole)/2],
		"last byte":    whole[:len(whole)-1],
		"one more":     append(whole[:len(whole):len(whole)], 0),
		"twice":        append(whole[:len(whole):len(whole)], whole...),
		"gzip by name": []byte("\x1f\x8b\x08\x00\x00\x00\x00\x00"),
	} {
		if err := os.WriteFile(bad, b, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, verb := range []string{"verify", "ls"} {
			args := []string{"bundle", verb, bad}
			if verb == "verify" {
				args = []string{"bundle", verb, "--allow-unsigned", bad}
			}
			if r := s.run(t, args); r.code != 4 {
				t.Errorf("%s: %s: exit %d, want 4\n%s", name, verb, r.code, r.stderr)
			}
		}
	}
}

// Without leave, an archive that nobody signed is refused.
func TestUnsignedIsRefusedByDefault(t *testing.T) {
	s := newSite(t, 0.005)
	path := filepath.Join(s.newFolder(t, "out"), "bundle.tar.zst")
	s.must(t, s.build(path, filepath.Join(s.dir, "cache"))...)
	for _, args := range [][]string{
		{"bundle", "verify", path},
		{"bundle", "extract", path, "--files", filepath.Join(s.dir, "files")},
	} {
		if r := s.run(t, args); r.code != 4 || !strings.Contains(r.stderr, "--allow-unsigned") {
			t.Errorf("%v: exit %d\n%s", args, r.code, r.stderr)
		}
	}
	if _, err := os.Stat(filepath.Join(s.dir, "files")); !os.IsNotExist(err) {
		t.Errorf("something was extracted: %v", err)
	}
}
