package e2e

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/bundle/archive"
)

// TestVolumes takes one bundle through everything that is done with volumes:
// built, read by every command, lost, mended, joined and split.
func TestVolumes(t *testing.T) {
	s := newSite(t, 0.02)
	cache := filepath.Join(s.dir, "cache")
	whole := filepath.Join(s.newFolder(t, "whole"), "demo.tar.zst")
	s.must(t, s.build(whole, cache)...)
	info, err := os.Stat(whole)
	if err != nil {
		t.Fatal(err)
	}
	size := fmt.Sprint(info.Size()/7 + 1)
	base := filepath.Join(s.newFolder(t, "volumes"), "demo.tar.zst")
	first := base + ".001"
	said(t, s.run(t, s.build(base, cache, "--volume-size", size, "--parity", "2")), 0, first, "in    7 volumes; carry a copy of "+base+".volumes")
	table, err := archive.Volumes(first)
	if err != nil {
		t.Fatal(err)
	}
	var all []byte
	for _, v := range table.Volumes {
		b, err := os.ReadFile(base + v.Name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, b...)
	}
	if hashOf(all) != hash(t, whole) {
		t.Error("the volumes one after another are not the archive")
	}
	t.Run("read", func(t *testing.T) { s.readAcross(t, whole, first) })
	t.Run("lost", func(t *testing.T) { s.lose(t, base, whole) })

	split := filepath.Join(s.newFolder(t, "split"), "demo.tar.zst")
	if err := os.Rename(whole, split); err != nil {
		t.Fatal(err)
	}
	s.must(t, "bundle", "split", split, "--size", size, "--parity", "2")
	for _, name := range names(t, filepath.Dir(base)) {
		if hash(t, filepath.Join(filepath.Dir(base), name)) != hash(t, filepath.Join(filepath.Dir(split), name)) {
			t.Errorf("%s is not the same when built and when split", name)
		}
	}
	again := filepath.Join(s.dir, "again.tar.zst")
	s.must(t, "bundle", "join", first, again)
	if hash(t, again) != hash(t, split) {
		t.Error("joined to other bytes")
	}
	said(t, s.run(t, []string{"bundle", "join", first, again}), 2, "already exists", "--force")
}

// readAcross runs every command that reads a bundle over both, and compares
// what they print.
func (s *site) readAcross(t *testing.T, whole, first string) {
	for i, args := range [][]string{
		{"bundle", "ls", "@"}, {"bundle", "show", "@", "-o", "json"}, {"bundle", "show", "@", "--part", "lock"},
		{"bundle", "verify", "--allow-unsigned", "-o", "json", "@"}, {"bundle", "check", "--allow-unsigned", "-o", "json", "@"},
		{"bundle", "sbom", "@"}, {"bundle", "sbom", "--format", "cyclonedx", "@"}, {"bundle", "diff", "@", whole}, {"bundle", "diff", s.lock, "@"},
		{"bundle", "extract", "--allow-unsigned", "@", "--files", filepath.Join(s.dir, "files-#")},
		{"bundle", "extract", "--allow-unsigned", "@", "--layout", filepath.Join(s.dir, "layout-#")},
	} {
		var out [2]string // check refuses this config, and says so of both
		for j, path := range []string{whole, first} {
			own := make([]string, len(args))
			for k, a := range args {
				own[k] = strings.ReplaceAll(strings.ReplaceAll(a, "@", path), "#", fmt.Sprint(i, j))
			}
			r := s.run(t, own)
			if r.code != 0 && args[1] != "check" {
				t.Fatalf("%v: exit %d\n%s", own, r.code, r.stderr)
			}
			out[j] = fmt.Sprint(r.code, strings.ReplaceAll(r.stdout, fmt.Sprint(i, j), ""))
		}
		if out[0] != out[1] {
			t.Errorf("%v prints other things of volumes:\n%s\n%s", args, out[0], out[1])
		}
	}
	r := s.must(t, "bundle", "diff", first, whole)
	if !strings.Contains(r.stdout, "0 added, 0 removed, 0 changed") || !strings.Contains(r.stdout, "lacks 0 B") {
		t.Errorf("a bundle differs from itself: %s", r.stdout)
	}
}

// lose takes volumes away and damages others: each command names them, one alone
// is verified, and parity mends two.
func (s *site) lose(t *testing.T, base, whole string) {
	first := base + ".001"
	for n := range 7 {
		said(t, s.run(t, []string{"bundle", "verify", "--volume", fmt.Sprint(n + 1), first}), 0, "intact", fmt.Sprintf(".%03d", n+1))
	}
	said(t, s.run(t, []string{"bundle", "verify", "--volume", "p2", first}), 0, "intact", ".p002")
	if err := os.Remove(base + ".003"); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(base + ".005")
	if err != nil {
		t.Fatal(err)
	}
	text[len(text)/2] ^= 1
	if err := os.WriteFile(base+".005", text, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"bundle", "ls", first}, {"bundle", "show", first}, {"bundle", "verify", "--allow-unsigned", first}, {"bundle", "check", first}, {"bundle", "sbom", first},
		{"bundle", "diff", first, whole}, {"bundle", "join", first}, {"bundle", "verify", "--volume", "3", first},
		{"bundle", "push", "--allow-unsigned", first, "127.0.0.1:1/x:1"}, {"install", "--allow-unsigned", "--bundle", first},
	} {
		said(t, s.run(t, args), 4, "demo.tar.zst.003: the volume is missing", "kubexm bundle repair "+first)
	}
	said(t, s.run(t, []string{"bundle", "verify", "--volume", "5", first}), 4, "demo.tar.zst.005: the volume is damaged")
	said(t, s.run(t, []string{"bundle", "repair", first}), 0, ".003: rebuilt", ".005: rebuilt")
	s.must(t, "bundle", "verify", "--allow-unsigned", first)
	said(t, s.run(t, []string{"bundle", "repair", first}), 0, "nothing to do")
	for _, name := range []string{".001", ".004", ".p001"} {
		if err := os.Rename(base+name, base+name+".away"); err != nil {
			t.Fatal(err)
		}
	}
	said(t, s.run(t, []string{"bundle", "repair", first}), 4, "3 volumes are missing or damaged", "parity can rebuild 2", "copy at least 1 of them again")
	for _, name := range []string{".001", ".004", ".p001"} {
		if err := os.Rename(base+name+".away", base+name); err != nil {
			t.Fatal(err)
		}
	}
}

// TestVolumesInBoundedMemory: volumes and parity cost no memory that grows.
func TestVolumesInBoundedMemory(t *testing.T) {
	const most = 128_000_000
	s := newSite(t, 1)
	cache := filepath.Join(s.dir, "cache")
	base := filepath.Join(s.newFolder(t, "out"), "demo.tar.zst")
	first := base + ".001"
	for _, args := range [][]string{
		s.build(base, cache, "--volume-size", "16MiB", "--parity", "3"),
		{"bundle", "verify", "--allow-unsigned", first},
		{"bundle", "repair", first},
		{"bundle", "join", first},
		{"bundle", "split", base, "--size", "8MiB", "--parity", "1", "--force"},
	} {
		if args[1] == "repair" {
			for _, name := range []string{".001", ".002", ".p001"} {
				if err := os.Remove(base + name); err != nil {
					t.Fatal(err)
				}
			}
		}
		u := s.measured(t, args)
		t.Logf("%s: at most %d MB of memory, %s of processor time", args[1], u.MaxRSS/1e6, u.CPU)
		if u.MaxRSS > most {
			t.Errorf("%s: %d bytes of memory, want %d at most", args[1], u.MaxRSS, int64(most))
		}
	}
	if b, err := os.ReadFile(base + ".volumes"); err != nil || !bytes.Contains(b, []byte(`"parity":1}`)) {
		t.Errorf("the table is not that of the last split: %v", err)
	}
}
