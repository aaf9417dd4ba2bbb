package hostile

import (
	"errors"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mensylisir/kubexm/bundle"
	"github.com/mensylisir/kubexm/bundle/archive"
	"github.com/mensylisir/kubexm/bundle/sign"
)

// swap is what becomes of an archive's file once it was opened. Under one by name,
// what was opened is read on.
type swap struct {
	byName bool
	do     func(path string, forged []byte) error
}

func swaps() map[string]swap {
	return map[string]swap{
		"another file takes its name": {true, func(path string, forged []byte) error {
			return errors.Join(os.WriteFile(path+".new", forged, 0o600), os.Rename(path+".new", path))
		}},
		"its name is gone":     {true, func(path string, _ []byte) error { return os.Remove(path) }},
		"overwritten in place": {false, overwrite},
		"cut in place":         {false, func(path string, forged []byte) error { return os.Truncate(path, int64(len(forged)/3)) }},
		"emptied in place":     {false, func(path string, _ []byte) error { return os.Truncate(path, 0) }},
	}
}

// files are an archive as it lies on the disk: one file, or volumes and their table.
func files(t *testing.T, b []byte, volumes bool) map[string][]byte {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "x.tar.zst")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if volumes {
		if _, err := bundle.Split(t.Context(), path, path, archive.VolumeOptions{VolumeSize: 128 << 10}, nil); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	found := map[string][]byte{}
	names, err := filepath.Glob(path + "*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if found[filepath.Base(name)], err = os.ReadFile(name); err != nil {
			t.Fatal(err)
		}
	}
	return found
}

// overwrite writes into the file that stands, which keeps whoever has it open.
func overwrite(path string, b []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(b, 0)
	return errors.Join(err, f.Truncate(int64(len(b))), f.Close())
}

// swapped has the file change between opening, verifying and unpacking: what comes out
// is what was verified, or an error with a code.
func (s *site) swapped(t *testing.T) {
	trusts, own, forged := s.signedAndForged(t)
	for form, volumes := range map[string]bool{"a file": false, "volumes": true} {
		mine, theirs := files(t, own, volumes), files(t, forged, volumes)
		for name, x := range swaps() {
			for _, when := range []string{"opened", "verified", "half unpacked"} {
				t.Run(form+"/"+name+", once "+when, func(t *testing.T) { s.swap(t, trusts, x, when, mine, theirs) })
			}
		}
	}
	t.Run("all the while", func(t *testing.T) { s.flickering(t, trusts, own, forged) })
}

// swap opens, verifies and unpacks an archive, and at one point swaps all its files.
func (s *site) swap(t *testing.T, trusts bundle.Policy, x swap, when string, mine, theirs map[string][]byte) {
	dir := t.TempDir()
	for name, b := range mine {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	all := func() (err error) {
		for name := range mine {
			err = errors.Join(err, x.do(filepath.Join(dir, name), theirs[name]))
		}
		return err
	}
	u := s.unpacking(t, filepath.Join(dir, slices.Min(slices.Collect(maps.Keys(mine)))), trusts) // the first volume, or all
	u.step(when, "opened", all)
	err := u.bundle.Verify(t.Context(), 2, nil)
	u.judged("verify", err, x.byName, when == "opened")
	u.step(when, "verified", all)
	_, err = u.bundle.ExtractFiles(t.Context(), filepath.Join(u.dir, "files"), bundle.ExtractOptions{})
	u.judged("extract files", err, x.byName, when != "half unpacked")
	u.step(when, "half unpacked", all)
	_, err = u.bundle.ExtractLayout(t.Context(), filepath.Join(u.dir, "layout"), bundle.ExtractOptions{})
	u.judged("extract", err, x.byName, true)
	u.blobs(x.byName)
	u.content()
}

// signedAndForged are the true bundle, signed by its maker, and one that lists and
// names the very same members, with other content in each blob.
func (s *site) signedAndForged(t *testing.T) (trusts bundle.Policy, own, forged []byte) {
	t.Helper()
	text, err := os.ReadFile(s.key)
	if err != nil {
		t.Fatal(err)
	}
	trust, err := sign.TrustKey(text)
	if err != nil {
		t.Fatal(err)
	}
	if own, err = signed(maker, nil, nil)(s.truth); err != nil {
		t.Fatal(err)
	}
	forged, err = from(func(p *pack) {
		for i := p.slot() + 1; i < len(p.members); i++ {
			if m := &p.members[i]; len(m.data) > 0 {
				m.listed = &entry{Digest: digestOf(m.data)}
				m.data = append([]byte{m.data[0] ^ 1}, m.data[1:]...)
			}
		}
	})(s.truth)
	if err != nil {
		t.Fatal(err)
	}
	return bundle.Policy{Verifier: sign.Verifier{trust}}, own, forged
}

// unpacking is a bundle that is being taken apart.
type unpacking struct {
	t      *testing.T
	bundle *bundle.Bundle
	dir    string
	true   map[string]bool // digests of all that the true bundle holds
}

func (s *site) unpacking(t *testing.T, path string, trusts bundle.Policy) *unpacking {
	t.Helper()
	b, err := bundle.Open(t.Context(), path, trusts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	return &unpacking{t: t, bundle: b, dir: t.TempDir(), true: s.digests()}
}

// digests are those of every member of the true bundle.
func (s *site) digests() map[string]bool {
	known := map[string]bool{}
	for _, b := range s.truth.head {
		known[digestOf(b)] = true
	}
	for _, m := range s.truth.blobs {
		known[digestOf(m.data)] = true
	}
	return known
}

func (u *unpacking) step(now, when string, swap func() error) {
	u.t.Helper()
	if now != when {
		return
	}
	if err := swap(); err != nil {
		u.t.Fatal(err)
	}
}

// judged holds an operation's end: it fails with a code where the bytes changed, and
// else does not.
func (u *unpacking) judged(what string, err error, byName, swapped bool) {
	u.t.Helper()
	_, coded := errors.AsType[archive.Code](err)
	if changed := swapped && !byName; changed != (err != nil) || err != nil && !coded {
		u.t.Errorf("%s: %v", what, err)
	}
}

// blobs reads every blob: none may come to its end with other bytes.
func (u *unpacking) blobs(byName bool) {
	u.t.Helper()
	refused := 0
	for d := range u.true {
		rc, _, err := u.bundle.Blob(d)
		if err != nil {
			refused++
			continue
		}
		text, err := io.ReadAll(rc)
		if cerr := rc.Close(); err != nil || cerr != nil {
			refused++
		} else if digestOf(text) != d {
			u.t.Errorf("blob %s was read to its end with other content", d)
		}
	}
	if byName != (refused == 0) {
		u.t.Errorf("%d of %d blobs were refused", refused, len(u.true))
	}
}

// content looks at what stands where things were unpacked to.
func (u *unpacking) content() {
	u.t.Helper()
	for name, is := range snapshot(u.t, u.dir) {
		_, sum, file := strings.Cut(is, " ")
		if frame := filepath.Base(name); !file || frame == "index.json" || frame == "oci-layout" {
			continue
		}
		if !u.true[sum] {
			u.t.Errorf("%s stands with content that nobody signed", name)
		}
	}
}

// flickering opens, verifies and unpacks while somebody overwrites the file again and
// again, with one and with the other.
func (s *site) flickering(t *testing.T, trusts bundle.Policy, own, forged []byte) {
	path := filepath.Join(t.TempDir(), "x.tar.zst")
	if err := os.WriteFile(path, own, 0o600); err != nil {
		t.Fatal(err)
	}
	_, want, err := content(t, path)
	if err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var writer sync.WaitGroup
	writer.Go(func() {
		pauses := rand.New(rand.NewPCG(1, 64))
		for i := 0; ; i++ {
			// The true one stands for longer, so that some get far, and some to the end.
			pause := time.Duration(pauses.IntN([]int{100, 5}[i%2])) * time.Millisecond
			select {
			case <-stop:
				return
			case <-time.After(pause):
			}
			if err := overwrite(path, [][]byte{forged, own}[i%2]); err != nil {
				t.Error(err)
				return
			}
		}
	})
	defer writer.Wait()
	defer close(stop)
	rounds, passed, half := 50, 0, 0
	if *everything {
		rounds = 500
	}
	for range rounds {
		dir := filepath.Join(t.TempDir(), "out")
		b, err := bundle.Verify(t.Context(), path, trusts, 2, nil)
		if err == nil {
			half++
			_, err = b.ExtractLayout(t.Context(), dir, bundle.ExtractOptions{})
			err = errors.Join(err, b.Close())
		}
		_, coded := errors.AsType[archive.Code](err)
		_, untrusted := errors.AsType[bundle.TrustCode](err)
		switch {
		case err == nil && !maps.Equal(snapshot(t, dir), want):
			t.Error("unpacked other content than was signed")
		case err == nil:
			passed++
		case !coded && !untrusted:
			t.Errorf("an error without a code: %v", err)
		}
	}
	t.Logf("%d rounds: verified %d times, unpacked whole %d times, refused else", rounds, half, passed)
}
