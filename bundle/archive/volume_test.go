package archive

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/testdata/fair"
)

const testVolume = MinVolumeSize

// cut writes a sample twice: as one file and in volumes. It gives the bytes of
// the first and the path of the first volume.
func cut(t testing.TB, parity int) (whole []byte, first string) {
	t.Helper()
	s := newSample([]int{200_000, 0, 150_000, 1}, []int{300_000, 5})
	whole = read(t, s.file(t))
	base := filepath.Join(t.TempDir(), "x.tar.zst")
	w, err := Create(base, s.layout(t), WriteOptions{VolumeOptions: VolumeOptions{VolumeSize: testVolume, Parity: parity}})
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range fair.Rand(t).Perm(len(s.blobs)) {
		if b := s.blobs[i]; !b.Compress {
			if err := w.WriteStored(t.Context(), b.Digest, bytes.NewReader(s.content[b.Digest])); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(t.Context(), s.open); err != nil {
		t.Fatal(err)
	}
	return whole, base + ".001"
}

func base(first string) string { return strings.TrimSuffix(first, ".001") }

// joined returns the concatenated volumes, as cat prints them.
func joined(t testing.TB, first string) []byte {
	t.Helper()
	tab, err := Volumes(first)
	if err != nil {
		t.Fatal(err)
	}
	var b []byte
	for _, v := range tab.Volumes {
		b = append(b, read(t, base(first)+v.Name)...)
	}
	return b
}

// hasVolume wants an error of that code about that volume, with advice.
func hasVolume(t testing.TB, err error, code Code, volume string) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) || e.Code != code || !strings.Contains(e.Volume, volume) || e.Advice == "" {
		t.Errorf("got %v (%+v), want %s about %s, with advice", err, e, code, volume)
	}
}

func TestVolumesAreTheArchive(t *testing.T) {
	whole, first := cut(t, 2)
	if !bytes.Equal(joined(t, first), whole) {
		t.Fatal("the volumes one after another are not the archive")
	}
	if err := check(t, first); err != nil {
		t.Error(err)
	}
	r := mustOpen(t, first)
	if r.Size() != int64(len(whole)) {
		t.Errorf("size %d, want %d", r.Size(), len(whole))
	}
	for _, name := range names(t, filepath.Dir(first)) {
		if strings.HasPrefix(name, ".") {
			t.Errorf("%s is left behind", name)
		}
	}
}

func TestSplitMatchesTheWriter(t *testing.T) {
	whole, first := cut(t, 2)
	path := filepath.Join(t.TempDir(), "y.tar.zst")
	if err := os.WriteFile(path, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Split(t.Context(), path, path, VolumeOptions{VolumeSize: testVolume, Parity: 2}, nil); err != nil {
		t.Fatal(err)
	}
	files, err := volumeFiles(base(first))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 8 {
		t.Fatalf("only %d files", len(files))
	}
	for _, f := range files {
		if !bytes.Equal(read(t, f), read(t, path+strings.TrimPrefix(f, base(first)))) {
			t.Errorf("%s differs", filepath.Base(f))
		}
	}
	out := filepath.Join(t.TempDir(), "z.tar.zst")
	if err := Join(t.Context(), path+".001", out, nil); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(read(t, out), whole) {
		t.Error("joined bytes are not those that were split")
	}
	// Fewer, larger volumes of the same name leave none of the old ones.
	if err := Split(t.Context(), path, path, VolumeOptions{VolumeSize: 3 * testVolume}, nil); err != nil {
		t.Fatal(err)
	}
	if err := check(t, path+".001"); err != nil {
		t.Error(err)
	}
	if files, _ = volumeFiles(path); len(files) != int(volumeCount(int64(len(whole)), 3*testVolume))+1 {
		t.Errorf("old volumes are left: %v", files)
	}
}

// TestEachVolumeFlippedCutAndSwapped breaks each volume in each way: reading
// names it, verifying it alone names it, and parity brings its bytes back.
func TestEachVolumeFlippedCutAndSwapped(t *testing.T) {
	_, first := cut(t, 2)
	tab, err := Volumes(first)
	if err != nil {
		t.Fatal(err)
	}
	_, other := cut(t, 2)
	foreign := read(t, other)
	foreign[0] ^= 1
	for i, v := range tab.all() {
		path := base(first) + v.Name
		good := read(t, path)
		next := base(first) + tab.all()[(i+1)%len(tab.all())].Name
		word := strings.TrimLeft(strings.Replace(v.Name, ".p", "p", 1), ".0")
		ways := map[string]func() error{
			"flipped":  func() error { return os.WriteFile(path, flip(good, len(good)/2), 0o600) },
			"head":     func() error { return os.WriteFile(path, flip(good, 0), 0o600) },
			"cut":      func() error { return os.WriteFile(path, good[:len(good)-1], 0o600) },
			"empty":    func() error { return os.WriteFile(path, nil, 0o600) },
			"longer":   func() error { return os.WriteFile(path, append(bytes.Clone(good), 0), 0o600) },
			"missing":  func() error { return os.Remove(path) },
			"foreign":  func() error { return os.WriteFile(path, foreign, 0o600) },
			"misnamed": func() error { return os.WriteFile(path, read(t, next), 0o600) },
		}
		for name, breaks := range ways {
			t.Run(v.Name+" "+name, func(t *testing.T) {
				if err := breaks(); err != nil {
					t.Fatal(err)
				}
				_, err := VerifyVolume(t.Context(), first, word, nil)
				hasVolume(t, err, ErrVolume, "x.tar.zst"+v.Name)
				if name == "misnamed" && v.Head != tab.all()[(i+1)%len(tab.all())].Head && !strings.Contains(err.Error(), "contains volume "+filepath.Ext(next)) {
					t.Errorf("%v does not say which volume it is", err)
				}
				if i < len(tab.Volumes) {
					err := check(t, first)
					var e *Error
					if !errors.As(err, &e) || !strings.Contains(e.Volume, v.Name) || e.Advice == "" {
						t.Errorf("reading all: %v", err)
					}
					if err := Join(t.Context(), first, filepath.Join(t.TempDir(), "j"), nil); err == nil {
						t.Error("joined")
					}
				} else if err := check(t, first); err != nil {
					t.Errorf("parity is not needed to read: %v", err)
				}
				mended, err := Repair(t.Context(), first, nil)
				if err != nil || len(mended) != 1 || mended[0] != "x.tar.zst"+v.Name {
					t.Fatalf("mended %v: %v", mended, err)
				}
				if !bytes.Equal(read(t, path), good) {
					t.Error("mended to other bytes")
				}
			})
		}
	}
}

func flip(b []byte, at int) []byte {
	b = bytes.Clone(b)
	b[at] ^= 0x10
	return b
}

func TestTwoVolumesExchanged(t *testing.T) {
	_, first := cut(t, 0)
	a, b := base(first)+".006", base(first)+".007"
	x, y := read(t, a), read(t, b)
	if err := errors.Join(os.WriteFile(a, y, 0o600), os.WriteFile(b, x, 0o600)); err != nil {
		t.Fatal(err)
	}
	_, err := Open(first)
	for _, want := range []string{"x.tar.zst.006: the file contains volume .007", "x.tar.zst.007: the file contains volume .006"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
	var e *Error
	if !errors.As(err, &e) || e.Advice != "copy x.tar.zst.006, x.tar.zst.007 again" {
		t.Errorf("advice %+v", e)
	}
}

// TestAnyTwoVolumesAreRebuilt loses every pair of volumes, and the table with them.
func TestAnyTwoVolumesAreRebuilt(t *testing.T) {
	whole, first := cut(t, 2)
	tab, err := Volumes(first)
	if err != nil {
		t.Fatal(err)
	}
	all := tab.all()
	for i := range all {
		for j := range i {
			for _, name := range []string{all[i].Name, all[j].Name, tableSuffix} {
				if i-j < len(tab.Volumes) || name != tableSuffix { // one copy of the table has to be left
					if err := os.Remove(base(first) + name); err != nil {
						t.Fatal(err)
					}
				}
			}
			if i >= len(tab.Volumes) && j >= len(tab.Volumes) { // both copies are gone too
				if err := os.WriteFile(base(first)+tableSuffix, tab.encode(), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := Repair(t.Context(), first, nil); err != nil {
				t.Fatalf("%s and %s: %v", all[i].Name, all[j].Name, err)
			}
			if !bytes.Equal(joined(t, first), whole) {
				t.Fatalf("%s and %s: other bytes", all[i].Name, all[j].Name)
			}
		}
	}
	for i := range 3 {
		if err := os.Remove(base(first) + all[i].Name); err != nil {
			t.Fatal(err)
		}
	}
	before := names(t, filepath.Dir(first))
	_, err = Repair(t.Context(), first, nil)
	if !errors.Is(err, ErrVolume) || !strings.Contains(err.Error(), "3 volumes are missing or damaged (x.tar.zst.001, x.tar.zst.002, x.tar.zst.003), and parity can rebuild 2") {
		t.Errorf("three lost of two: %v", err)
	}
	if got := names(t, filepath.Dir(first)); fmt.Sprint(got) != fmt.Sprint(before) {
		t.Errorf("files before %v and after %v", before, got)
	}
}

func TestTables(t *testing.T) {
	whole, first := cut(t, 1)
	table := base(first) + tableSuffix
	good := read(t, table)
	for at := range good {
		if _, err := parseTable(flip(good, at)); err == nil {
			t.Fatalf("a flip at byte %d is not seen", at)
		}
	}
	// A damaged or missing table is no harm where parity has a copy.
	if err := os.WriteFile(table, flip(good, 5), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := check(t, first); err != nil {
		t.Error(err)
	}
	mended, err := Repair(t.Context(), first, nil)
	if err != nil || fmt.Sprint(mended) != "[x.tar.zst.volumes]" || !bytes.Equal(read(t, table), good) {
		t.Errorf("mended %v: %v", mended, err)
	}
	if err := os.Remove(base(first) + ".p001"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(table, flip(good, 5), 0o600); err != nil {
		t.Fatal(err)
	}
	hasVolume(t, check(t, first), ErrVolume, "x.tar.zst.volumes")
	if err := os.Remove(table); err != nil {
		t.Fatal(err)
	}
	hasVolume(t, check(t, first), ErrVolume, "x.tar.zst.volumes")
	// Without a table the name of a whole archive may end in .001.
	odd := filepath.Join(t.TempDir(), "odd.001")
	if err := os.WriteFile(odd, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := check(t, odd); err != nil {
		t.Error(err)
	}
}

func TestVolumesRefuse(t *testing.T) {
	whole, first := cut(t, 1)
	_, err := Open(base(first) + ".002")
	hasVolume(t, err, ErrInput, "x.tar.zst.002")
	if err := WriteSignatures(first, []byte("{}\n")); !errors.Is(err, ErrInput) {
		t.Errorf("signed in volumes: %v", err)
	}
	if err := Split(t.Context(), first, filepath.Join(t.TempDir(), "s"), VolumeOptions{VolumeSize: testVolume}, nil); !errors.Is(err, ErrInput) {
		t.Errorf("split twice: %v", err)
	}
	for _, word := range []string{"0", "p0", "99", "p2", "x", "", "-1"} {
		if _, err := VerifyVolume(t.Context(), first, word, nil); !errors.Is(err, ErrInput) {
			t.Errorf("volume %q: %v", word, err)
		}
	}
	path := filepath.Join(t.TempDir(), "w")
	if err := os.WriteFile(path, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, o := range map[string]VolumeOptions{
		"too small": {VolumeSize: 1}, "parity without size": {Parity: 1}, "too many": {VolumeSize: testVolume, Parity: 250}, "negative": {VolumeSize: testVolume, Parity: -1},
	} {
		if err := Split(t.Context(), path, path, o, nil); !errors.Is(err, ErrInput) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := checkVolumes(1<<40, 1<<30, 0); !errors.Is(err, ErrInput) {
		t.Errorf("1,024 volumes: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Split(ctx, path, path, VolumeOptions{VolumeSize: testVolume, Parity: 1}, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if got := names(t, filepath.Dir(path)); len(got) != 1 {
		t.Errorf("left behind: %v", got)
	}
}

// TestVolumeBuffers holds the memory of parity to a bound for any count.
func TestVolumeBuffers(t *testing.T) {
	for n := 1; n <= MaxShards; n++ {
		if got := shardStep(n) * int64(n); got > shardMemory+int64(n)*4<<10 || shardStep(n) < 4<<10 {
			t.Fatalf("%d shards take %d bytes", n, got)
		}
	}
}

// FuzzTable gives whatever it likes as a table: it is refused, or it is exactly
// what the writer of such a table writes.
func FuzzTable(f *testing.F) {
	_, first := cut(f, 1)
	text := read(f, base(first)+tableSuffix)
	f.Add(text)
	f.Add([]byte{})
	f.Add(bytes.Replace(text, []byte(`"volumes":`), []byte(`"volumes":-`), 1))
	f.Fuzz(func(t *testing.T, b []byte) {
		tab, err := parseTable(b)
		if err != nil {
			return
		}
		if !bytes.Equal(tab.encode(), b) {
			t.Errorf("accepted what would be written otherwise:\n%s", b)
		}
	})
}

// FuzzCopy does the same with the end of a parity volume.
func FuzzCopy(f *testing.F) {
	_, first := cut(f, 1)
	text := read(f, base(first)+".p001")
	f.Add(text[len(text)-2000:])
	f.Add(appendCopy(nil, nil))
	f.Add(appendCopy(nil, read(f, base(first)+tableSuffix)))
	f.Fuzz(func(t *testing.T, b []byte) {
		path := filepath.Join(t.TempDir(), "p")
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if tab, err := readCopy(path); err == nil && !bytes.HasSuffix(b, appendCopy(nil, tab.encode())) {
			t.Error("a copy that no writer makes")
		}
	})
}
