package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/mensylisir/kubexm/bundle"
	"github.com/mensylisir/kubexm/bundle/sign"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/registry/registrytest"
)

// TestLongestProvenance: a statement of how a bundle was made is as long as there is
// room for several people's, and left out where it is longer.
func TestLongestProvenance(t *testing.T) {
	pair, err := sign.Generate(nil)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := sign.LoadSigner(pair.Private, nil)
	if err != nil {
		t.Fatal(err)
	}
	root := digest.FromString("a root")
	lines := func(address int) (lines [][]byte, said string) {
		var log bytes.Buffer
		a := &app{log: slog.New(slog.NewTextHandler(&log, nil))}
		l := &manifest.Lock{Cluster: "demo", Created: time.Unix(1750000000, 0), Artifacts: []manifest.Artifact{
			{ID: "file/x/v1", Kind: manifest.File, Address: strings.Repeat("x", address), SHA256: strings.Repeat("a", 64)},
		}}
		if lines, err = a.maker(signer).Lines(root, l, bundle.ClaimOf(l)); err != nil {
			t.Fatal(err)
		}
		return lines, log.String()
	}
	short, _ := lines(0)
	if len(short) != 2 {
		t.Fatalf("%d lines", len(short))
	}
	// Three bytes of the payload are four of the line; a signature has a few bytes more or less.
	longest := (112<<10 - len(short[1])) / 4 * 3
	kept, said := lines(longest - 24)
	if len(kept) != 2 || len(kept[1]) > 112<<10 || len(kept[1]) < 112<<10-64 || said != "" {
		t.Errorf("%d lines where it just fits, and said %q", len(kept), said)
	}
	left, said := lines(longest + 24)
	if len(left) != 1 || !strings.Contains(said, "level=WARN") || !strings.Contains(said, "the provenance is too long for the archive and is left out") {
		t.Errorf("%d lines where it just does not fit, and said %q", len(left), said)
	}
}

// provenWorld is a folder with a bundle of that many programs, and keys of several
// makers. Names are long: a provenance is as long with a quarter of the programs.
func provenWorld(t *testing.T, programs int) (dir, archive string) {
	t.Helper()
	dir = t.TempDir()
	w := registrytest.NewContent("")
	for i := range programs {
		w.Binary(fmt.Sprintf("program-%04d-%s", i, strings.Repeat("x", 250)), "v1", fmt.Appendf(nil, "program %d", i))
	}
	archive, err := w.Build(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	return dir, archive
}

// at runs a command line with the password of every key.
func at(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, said bytes.Buffer
	a := &app{in: strings.NewReader(""), out: &out, err: &said, stop: make(chan struct{}), env: func(name string) (string, bool) {
		return "canary", name == sign.PasswordVariable
	}}
	code = a.run(t.Context(), args)
	return code, out.String(), said.String()
}

// TestProvenanceThatDoesNotFit: a bundle is signed and verified all the same, and the
// one who signs is told.
func TestProvenanceThatDoesNotFit(t *testing.T) {
	dir, archive := provenWorld(t, 160)
	key := filepath.Join(dir, "a")
	if code, _, stderr := at(t, "keys", "generate", "--output-key-prefix", key); code != 0 {
		t.Fatal(stderr)
	}
	code, _, stderr := at(t, "bundle", "sign", "--sign-key", key+".key", archive)
	if code != 0 || !strings.Contains(stderr, "the provenance is too long for the archive and is left out; the lock in the archive lists every input") {
		t.Errorf("sign: exit %d, %s", code, stderr)
	}
	by, provenance := vouchedFor(t, key+".pub", archive)
	if by != 1 || provenance != 0 {
		t.Errorf("%d signatures and %d provenances", by, provenance)
	}
}

// TestManyLongProvenances: the slot has room for two of the longest. Whoever comes
// third signs what the bundle is, and leaves out how it was made.
func TestManyLongProvenances(t *testing.T) {
	dir, archive := provenWorld(t, 100)
	for i, maker := range []string{"a", "b", "c", "d"} {
		key := filepath.Join(dir, maker)
		if code, _, stderr := at(t, "keys", "generate", "--output-key-prefix", key); code != 0 {
			t.Fatal(stderr)
		}
		code, _, stderr := at(t, "bundle", "sign", "--sign-key", key+".key", archive)
		said := strings.Contains(stderr, "no space is left for the provenance beside the other signatures")
		if code != 0 || said != (i >= 2) {
			t.Fatalf("%s: exit %d, %s", maker, code, stderr)
		}
	}
	for i, maker := range []string{"a", "b", "c", "d"} {
		by, provenance := vouchedFor(t, filepath.Join(dir, maker+".pub"), archive)
		if by != 1 || (provenance == 1) != (i < 2) {
			t.Errorf("%s: %d signatures and %d provenances", maker, by, provenance)
		}
	}
	// Room again, for who signs anew: the first one's lines are replaced.
	if code, _, stderr := at(t, "bundle", "sign", "--sign-key", filepath.Join(dir, "a.key"), archive); code != 0 || strings.Contains(stderr, "no room") {
		t.Errorf("the first again: exit %d, %s", code, stderr)
	}
}

// vouchedFor verifies a bundle with a key: how many signatures count, and how many of
// these come with a provenance.
func vouchedFor(t *testing.T, key, archive string) (by, provenance int) {
	t.Helper()
	code, stdout, stderr := at(t, "bundle", "verify", "--key", key, archive, "-o", "json")
	if code != 0 {
		t.Fatalf("verify: exit %d, %s", code, stderr)
	}
	var said struct{ Vouchers []bundle.AcceptedSignature }
	if err := json.Unmarshal([]byte(stdout), &said); err != nil {
		t.Fatal(err)
	}
	for _, v := range said.Vouchers {
		by++
		if v.Provenance != nil {
			provenance++
		}
	}
	return by, provenance
}
