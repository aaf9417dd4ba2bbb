package archive

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/mensylisir/kubexm/testdata/fair"
)

// unpack extracts b into a new directory and gives its path.
func unpack(t testing.TB, b []byte, o ExtractOptions) (string, error) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "out")
	if o.Limit == 0 {
		o.Limit = 64 << 20
	}
	return dir, Extract(t.Context(), bytes.NewReader(b), dir, o)
}

// files reads a whole directory tree.
func files(t testing.TB, dir string) map[string]string {
	t.Helper()
	found := make(map[string]string)
	err := fs.WalkDir(os.DirFS(dir), ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(filepath.Join(dir, p))
		found[p] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// tree is what an extraction of s must give.
func (s *sample) tree() map[string]string {
	want := map[string]string{"oci-layout": string(s.oci), "index.json": string(s.index), slotName: string(emptySlot())}
	for _, h := range s.head {
		want[blobName(digestOf(h))] = string(h)
	}
	for d, b := range s.content {
		want[blobName(d)] = string(b)
	}
	return want
}

func TestExtract(t *testing.T) {
	s := newSample(edges, []int{5, chunkSize + 1})
	b := read(t, s.file(t))
	dec, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer dec.Close()
	plain, err := dec.DecodeAll(b, nil)
	if err != nil {
		t.Fatal(err)
	}
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedDefault))
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{"as written": b, "recompressed": enc.EncodeAll(plain, nil), "stored in one frame": appendRawFrame(nil, plain)} {
		total := int64(0)
		dir, err := unpack(t, b, ExtractOptions{Progress: func(n int64) { total += n }})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got, want := files(t, dir), s.tree()
		if !maps.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", name, slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
		}
		sum := 0
		for _, c := range want {
			sum += len(c)
		}
		if total != int64(sum) {
			t.Errorf("%s: progress said %d bytes of %d", name, total, sum)
		}
		if left := names(t, filepath.Dir(dir)); len(left) != 1 {
			t.Errorf("%s: left behind %v", name, left)
		}
	}
}

func TestExtractTargets(t *testing.T) {
	b := read(t, newSample([]int{9}, nil).file(t))
	extract := func(dir string) error {
		return Extract(t.Context(), bytes.NewReader(b), dir, ExtractOptions{Limit: 1 << 20})
	}
	parent := t.TempDir()
	dir := filepath.Join(parent, "out")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := extract(dir); err != nil {
		t.Errorf("an empty directory: %v", err)
	}
	if err := extract(dir); !errors.Is(err, ErrExists) {
		t.Errorf("a full directory: %v", err)
	}
	if len(files(t, dir)) == 0 {
		t.Error("a refused extraction emptied the directory")
	}
	file := filepath.Join(parent, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := extract(file); !errors.Is(err, ErrExists) {
		t.Errorf("a file: %v", err)
	}
	empty := filepath.Join(parent, "empty")
	if err := os.Mkdir(empty, 0o755); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(parent, "link")
	if err := os.Symlink(empty, link); err != nil {
		t.Fatal(err)
	}
	if err := extract(link); !errors.Is(err, ErrExists) {
		t.Errorf("a symbolic link: %v", err)
	}
	// What a killed run left is taken over; links in it are not followed.
	stale := filepath.Join(parent, ".again.part")
	if err := os.MkdirAll(filepath.Join(stale, "blobs"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(dir, filepath.Join(stale, "blobs", "sha256")); err != nil {
		t.Fatal(err)
	}
	if err := extract(filepath.Join(parent, "again")); err != nil {
		t.Errorf("after a killed run: %v", err)
	}
	if len(files(t, dir)) == 0 {
		t.Error("a link in a stale stage was followed")
	}
	if err := Extract(t.Context(), bytes.NewReader(b), filepath.Join(parent, "x"), ExtractOptions{}); !errors.Is(err, ErrInput) {
		t.Errorf("no limit: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Extract(ctx, bytes.NewReader(b), filepath.Join(parent, "x"), ExtractOptions{Limit: 1}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	dead := errors.New("the line went dead")
	half := io.MultiReader(bytes.NewReader(b[:len(b)/2]), iotest.ErrReader(dead))
	if err := Extract(t.Context(), half, filepath.Join(parent, "x"), ExtractOptions{Limit: 1 << 20}); !errors.Is(err, dead) {
		t.Errorf("dead line: %v", err)
	}
	if got := names(t, parent); !slices.Equal(got, []string{"again", "empty", "file", "link", "out"}) {
		t.Errorf("left behind: %v", got)
	}
}

func TestExtractCallsHead(t *testing.T) {
	s := newSample([]int{9, 8}, []int{7})
	path := s.file(t)
	if err := WriteSignatures(path, []byte("{\"sig\":1}\n")); err != nil {
		t.Fatal(err)
	}
	b := read(t, path)
	all := func() map[string]int64 {
		want := map[string]int64{digestOf(s.head[0]): int64(len(s.head[0]))}
		for _, x := range s.blobs {
			want[x.Digest] = x.Size
		}
		return want
	}
	refusal := errors.New("signed by nobody we know")
	for _, c := range []struct {
		name   string
		change func(map[string]int64) (map[string]int64, error)
		want   error
	}{
		{"all known", func(m map[string]int64) (map[string]int64, error) { return m, nil }, nil},
		{"no opinion", func(map[string]int64) (map[string]int64, error) { return nil, nil }, nil},
		{"refused", func(m map[string]int64) (map[string]int64, error) { return m, refusal }, refusal},
		{"one unknown", func(m map[string]int64) (map[string]int64, error) { delete(m, s.blobs[1].Digest); return m, nil }, ErrUnexpected},
		{"none known", func(map[string]int64) (map[string]int64, error) { return map[string]int64{}, nil }, ErrUnexpected},
		{"one more", func(m map[string]int64) (map[string]int64, error) { m[digestOf([]byte("?"))] = 1; return m, nil }, ErrMissing},
		{"other size", func(m map[string]int64) (map[string]int64, error) { m[s.blobs[2].Digest]++; return m, nil }, ErrSize},
	} {
		called := false
		dir, err := unpack(t, b, ExtractOptions{Head: func(root *os.Root) (map[string]int64, error) {
			called = true
			slot, err := root.ReadFile(slotName)
			if err != nil || !strings.HasPrefix(string(slot), `{"sig":1}`) {
				t.Errorf("the slot is %.20q, %v", slot, err)
			}
			if _, err := root.ReadFile(blobName(digestOf(s.head[1]))); err != nil {
				t.Error(err)
			}
			if _, err := root.Stat(blobName(s.blobs[0].Digest)); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("a blob was read before the head was judged: %v", err)
			}
			return c.change(all())
		}})
		if !called || !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
		if _, statErr := os.Stat(dir); (statErr == nil) != (err == nil) {
			t.Errorf("%s: directory %v after %v", c.name, statErr, err)
		}
	}
}

// entry is one member of a hostile tar.
type entry struct {
	tar.Header
	data  []byte
	block []byte // if set, these bytes in place of header, data and padding
}

func file(name string, data []byte) entry {
	return entry{Header: tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(data)), Mode: 0o644,
		ModTime: time.Unix(0, 0), Format: tar.FormatGNU}, data: data}
}

func goodBlob(data []byte) entry { return file(blobName(digestOf(data)), data) }

// honest is the members of a small good archive.
func honest() []entry {
	return []entry{
		file(layoutName, []byte(`{"imageLayoutVersion":"1.0.0"}`)), file(indexName, []byte(`{}`)),
		goodBlob([]byte("root")), file(slotName, emptySlot()),
		goodBlob([]byte("b")), goodBlob([]byte("a")), // 3e23… and ca97…: sorted
	}
}

// tarOf writes entries; a tar that archive/tar refuses to write is patched by hand.
func tarOf(t testing.TB, es []entry) []byte {
	t.Helper()
	var out []byte
	for _, e := range es {
		if e.block != nil {
			out = append(out, e.block...)
			continue
		}
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		if err := w.WriteHeader(&e.Header); err != nil {
			t.Fatalf("%q: %v", e.Name, err)
		}
		if len(e.data) > 0 {
			if _, err := w.Write(e.data); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Flush(); err != nil && e.Size == int64(len(e.data)) {
			t.Fatal(err)
		}
		out = append(out, b.Bytes()...)
	}
	return append(out, make([]byte, endData)...)
}

// raw is a header block with a name that archive/tar would not write.
func raw(name string, change func(b []byte)) entry {
	b, err := tarHeader(layoutName, 0)
	if err != nil {
		panic(err)
	}
	clear(b[:100])
	copy(b[:100], name)
	if change != nil {
		change(b)
	}
	return entry{block: seal(b)}
}

// seal makes a header's checksum right.
func seal(b []byte) []byte {
	copy(b[148:156], "        ")
	sum := 0
	for _, c := range b {
		sum += int(c)
	}
	copy(b[148:156], fmt.Sprintf("%06o\x00 ", sum))
	return b
}

// hostile is one refused tar.
type hostile struct {
	name string
	tar  func(t testing.TB) []byte
	want Code
}

// with gives the honest members with others added after the slot.
func with(es ...entry) func(t testing.TB) []byte {
	return func(t testing.TB) []byte { return tarOf(t, slices.Concat(honest()[:4], es, honest()[4:])) }
}

// first gives a tar whose first member is e.
func first(es ...entry) func(t testing.TB) []byte {
	return func(t testing.TB) []byte { return tarOf(t, slices.Concat(es, honest())) }
}

func edit(change func(es []entry) []entry) func(t testing.TB) []byte {
	return func(t testing.TB) []byte { return tarOf(t, change(honest())) }
}

func hostileNames() []hostile {
	hex := digestOf([]byte("b"))[7:]
	var cs []hostile
	for _, name := range []string{
		"../x", "/etc/x", "a/../../x", "blobs/sha256/../../x", `blobs\sha256\` + hex, "blobs/sha256/a\nb", "blobs/sha256/\x1b[2J",
		".", "./", "..", "blobs/sha256/" + hex + "/", "blobs/sha256/" + strings.ToUpper(hex), "blobs/sha512/" + hex, "blobs/sha256/" + hex[:63],
		"blobs/sha256/" + hex + "0", "./oci-layout", "OCI-LAYOUT", "kubexm/signatures/", "kubexm/Signatures", "Blobs/sha256/" + hex,
		"blobs//sha256/" + hex, "blobs/sha256/./" + hex[:62], "index.json ", "ｉndex.json", "bl\u00f6bs/sha256/" + hex[:60], "blobs/sha256", "-rf", strings.Repeat("a/", 49),
	} {
		cs = append(cs, hostile{fmt.Sprintf("name %q", name), with(raw(name, nil)), ErrName})
	}
	return append(cs,
		hostile{"empty name", with(raw("", nil)), ErrName},
		hostile{"NUL in name", with(raw("blobs/sha256/"+hex[:10]+"\x00"+hex[:53], nil)), ErrName},
		hostile{"NUL behind name", with(raw(slotName+"\x00x", nil)), ErrHeader},
		hostile{"prefix field", with(raw(slotName, func(b []byte) { copy(b[257:], "ustar\x0000"); copy(b[345:], "/etc") })), ErrHeader},
		hostile{"name of 1 MiB", with(entry{Header: tar.Header{Typeflag: tar.TypeReg, Name: strings.Repeat("a", 1<<20), Format: tar.FormatGNU}}), ErrType},
		hostile{"10,000 directories deep", with(entry{Header: tar.Header{Typeflag: tar.TypeReg, Name: strings.Repeat("a/", 10000) + "x", Format: tar.FormatPAX}}), ErrType},
	)
}

func hostileTypes() []hostile {
	name := blobName(digestOf([]byte("z")))
	of := func(h tar.Header) entry {
		h.ModTime, h.Mode = time.Unix(0, 0), 0o644
		return entry{Header: h}
	}
	typed := func(c byte) entry { return raw(name, func(b []byte) { b[156] = c }) }
	mode := func(m int64) entry {
		e := file(name, []byte("z"))
		e.Mode = m
		return e
	}
	return []hostile{
		{"absolute symlink", with(of(tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: "/etc/passwd", Format: tar.FormatGNU})), ErrType},
		{"relative symlink", with(of(tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: "../../../x", Format: tar.FormatGNU})), ErrType},
		{"symlink inside", with(of(tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: "../../oci-layout", Format: tar.FormatUSTAR})), ErrType},
		{"symlink in a directory's place, then a file through it", first(of(tar.Header{Typeflag: tar.TypeSymlink, Name: "blobs", Linkname: "/tmp", Format: tar.FormatGNU}), file(name, []byte("z"))), ErrType},
		{"hard link to a blob", with(of(tar.Header{Typeflag: tar.TypeLink, Name: name, Linkname: layoutName, Format: tar.FormatGNU})), ErrType},
		{"hard link outside", with(of(tar.Header{Typeflag: tar.TypeLink, Name: name, Linkname: "../../../etc/passwd", Format: tar.FormatGNU})), ErrType},
		{"character device", with(of(tar.Header{Typeflag: tar.TypeChar, Name: name, Devmajor: 1, Devminor: 3, Format: tar.FormatGNU})), ErrType},
		{"block device", with(of(tar.Header{Typeflag: tar.TypeBlock, Name: name, Format: tar.FormatGNU})), ErrType},
		{"FIFO", with(of(tar.Header{Typeflag: tar.TypeFifo, Name: name, Format: tar.FormatGNU})), ErrType},
		{"directory", with(of(tar.Header{Typeflag: tar.TypeDir, Name: "blobs/", Format: tar.FormatGNU})), ErrType},
		{"contiguous file", with(typed(tar.TypeCont)), ErrType},
		{"GNU sparse", with(typed(tar.TypeGNUSparse)), ErrType},
		{"GNU long link", with(typed(tar.TypeGNULongLink)), ErrType},
		{"volume header", with(typed('V')), ErrType},
		{"multi-volume", with(typed('M')), ErrType},
		{"unknown type", with(typed('?')), ErrType},
		{"old regular type", with(typed(0)), ErrType},
		{"PAX path", with(of(tar.Header{Typeflag: tar.TypeReg, Name: name, PAXRecords: map[string]string{"KUBEXM.x": "y"}, Format: tar.FormatPAX})), ErrType},
		{"PAX size", with(raw(name, func(b []byte) { b[156] = tar.TypeXHeader })), ErrType},
		{"global PAX header", first(raw("pax_global_header", func(b []byte) { b[156] = tar.TypeXGlobalHeader })), ErrType},
		{"setuid", with(mode(0o4755)), ErrHeader},
		{"sticky", with(mode(0o1644)), ErrHeader},
		{"executable", with(mode(0o755)), ErrHeader},
		{"owner", with(raw(name, func(b []byte) { copy(b[108:], "0001750") })), ErrHeader},
		{"owner's name", with(raw(name, func(b []byte) { copy(b[265:], "root") })), ErrHeader},
		{"time", with(raw(name, func(b []byte) { copy(b[136:], "00000000001") })), ErrHeader},
		{"link name on a file", with(raw(name, func(b []byte) { copy(b[157:], "/etc/passwd") })), ErrHeader},
		{"hidden bytes at the header's end", with(raw(name, func(b []byte) { b[511] = 1 })), ErrHeader},
		{"POSIX header", with(raw(name, func(b []byte) { copy(b[257:], "ustar\x0000") })), ErrHeader},
		{"no magic", with(raw(name, func(b []byte) { clear(b[257:265]) })), ErrHeader},
		{"wrong checksum", with(entry{block: append([]byte{}, func() []byte { b := raw(name, nil).block; b[148] ^= 1; return b }()...)}), ErrHeader},
	}
}

func hostileSizes() []hostile {
	name := blobName(digestOf(nil))
	sized := func(name string, n uint64) entry { // base 256, as GNU writes large sizes
		return raw(name, func(b []byte) {
			clear(b[124:136])
			b[124] = 0x80
			binary.BigEndian.PutUint64(b[128:], n)
		})
	}
	return []hostile{
		{"size 2^60", with(sized(name, 1<<60)), ErrLimit},
		{"size 2^63-1", with(sized(name, 1<<63-1)), ErrLimit},
		{"size over the limit", with(raw(name, func(b []byte) { copy(b[124:], "77777777777") })), ErrLimit},
		{"negative size", with(raw(name, func(b []byte) {
			for i := 124; i < 136; i++ {
				b[i] = 0xff
			}
		})), ErrHeader},
		{"size in other digits", with(raw(name, func(b []byte) { copy(b[124:], "0x000000010") })), ErrHeader},
		{"size with spaces", with(raw(name, func(b []byte) { copy(b[124:], "          0") })), ErrHeader},
		{"large oci-layout", edit(func(es []entry) []entry { es[0] = file(layoutName, make([]byte, maxOCILayout+1)); return es }), ErrLimit},
		{"large index.json", edit(func(es []entry) []entry { es[1] = file(indexName, make([]byte, maxIndexJSON+1)); return es }), ErrLimit},
		{"head blob too large", edit(func(es []entry) []entry {
			es[2] = raw(es[2].Name, func(b []byte) { copy(b[124:], fmt.Sprintf("%011o", maxHeadBlob+1)) })
			return es
		}), ErrLimit},
		{"small slot", edit(func(es []entry) []entry { es[3] = file(slotName, emptySlot()[1:]); return es }), ErrSlot},
		{"large slot", edit(func(es []entry) []entry { es[3] = file(slotName, append(emptySlot(), ' ')); return es }), ErrSlot},
		{"slot with rubbish", edit(func(es []entry) []entry { es[3].data[5000] = 'x'; return es }), ErrSlot},
	}
}

func hostileSequences() []hostile {
	b := goodBlob([]byte("b"))
	return []hostile{
		{"no oci-layout", edit(func(es []entry) []entry { return es[1:] }), ErrOrder},
		{"no index.json", edit(func(es []entry) []entry { return slices.Delete(es, 1, 2) }), ErrOrder},
		{"no slot", edit(func(es []entry) []entry { return slices.Delete(es, 3, 4) }), ErrMissing},
		{"slot first", first(file(slotName, emptySlot())), ErrOrder},
		{"two slots", with(file(slotName, emptySlot())), ErrDuplicate},
		{"two index.json", with(file(indexName, []byte("{}"))), ErrDuplicate},
		{"blob twice, same bytes", with(b, b), ErrDuplicate},
		{"blob twice, other bytes", with(b, file(b.Name, []byte("c"))), ErrDuplicate},
		{"head blob again", with(goodBlob([]byte("root"))), ErrDuplicate},
		{"three runs of blobs", with(goodBlob([]byte("a")), goodBlob([]byte("c")), goodBlob([]byte("d"))), ErrOrder},
		{"wrong content", with(file(b.Name, []byte("c"))), ErrDigest},
		{"empty content", with(file(b.Name, nil)), ErrDigest},
		{"padding not zero", func(t testing.TB) []byte { x := tarOf(t, honest()); x[513+30] = 1; return x }, ErrPadding},
		{"no end", func(t testing.TB) []byte { x := tarOf(t, honest()); return x[:len(x)-endData] }, ErrEnd},
		{"half an end", func(t testing.TB) []byte { x := tarOf(t, honest()); return x[:len(x)-tarBlock] }, ErrEnd},
		{"damaged end", func(t testing.TB) []byte { x := tarOf(t, honest()); x[len(x)-3] = 1; return x }, ErrEnd},
		{"cut in a header", func(t testing.TB) []byte { return tarOf(t, honest())[:100] }, ErrEnd},
		{"cut in data", func(t testing.TB) []byte { return tarOf(t, honest())[:3000] }, ErrEnd},
		{"three blocks of end", func(t testing.TB) []byte { return append(tarOf(t, honest()), make([]byte, tarBlock)...) }, ErrTrailing},
		{"one byte behind the end", func(t testing.TB) []byte { return append(tarOf(t, honest()), 0) }, ErrTrailing},
		{"a second tar", func(t testing.TB) []byte { return append(tarOf(t, honest()), tarOf(t, honest())...) }, ErrTrailing},
		{"nothing", func(testing.TB) []byte { return nil }, ErrFormat},
		{"only an end", func(t testing.TB) []byte { return tarOf(t, nil) }, ErrMissing},
		{"no tar", func(testing.TB) []byte { return bytes.Repeat([]byte("hello "), 1000) }, ErrHeader},
	}
}

// refused extracts a hostile stream and checks all that must hold then.
func refused(t *testing.T, r io.Reader, o ExtractOptions, want Code) {
	t.Helper()
	parent := t.TempDir()
	inner := filepath.Join(parent, "inner")
	if err := os.Mkdir(inner, 0o755); err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	clock := fair.Start()
	err := Extract(t.Context(), r, filepath.Join(inner, "out"), o)
	if !raceEnabled {
		clock.Within(t, 10*time.Second)
	}
	runtime.ReadMemStats(&after)
	if grown := int64(after.Sys) - int64(before.Sys); grown > 256<<20 {
		t.Errorf("took %d MiB of memory", grown>>20)
	}
	var e *Error
	if !errors.Is(err, want) || !errors.As(err, &e) || e.Code != want {
		t.Errorf("%v, want %s", err, want)
	}
	if err != nil && strings.ContainsAny(err.Error(), "\x00\x1b\n") {
		t.Errorf("a name came through unquoted: %q", err)
	}
	if got := slices.Concat(names(t, parent), names(t, inner)); !slices.Equal(got, []string{"inner"}) {
		t.Errorf("left behind: %v", got)
	}
}

func TestHostileTars(t *testing.T) {
	if dir, err := unpack(t, appendRawFrame(nil, tarOf(t, honest())), ExtractOptions{}); err != nil || len(files(t, dir)) != 6 {
		t.Fatalf("the honest one: %v", err)
	}
	for _, c := range slices.Concat(hostileNames(), hostileTypes(), hostileSizes(), hostileSequences()) {
		t.Run(c.name, func(t *testing.T) {
			refused(t, bytes.NewReader(appendRawFrame(nil, c.tar(t))), ExtractOptions{Limit: 128 << 20}, c.want)
		})
	}
}

func TestHostileFrames(t *testing.T) {
	s := newSample([]int{5000}, []int{5000})
	b := read(t, s.file(t))
	members := mustOpen(t, s.file(t)).Members()
	last := members[len(members)-1]
	frameAt := last.Offset + last.Length + rawFrameLen(endData)
	enc, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	skippable := []byte("\x50\x2a\x4d\x18\x04\x00\x00\x00data")
	patched := func(at int, v byte) []byte { x := bytes.Clone(b); x[at] = v; return x }
	// An index that is right in itself, about other members.
	other := slices.Clone(members)
	for i := range other[2:3] {
		m := &other[2+i]
		m.Digest = digestOf([]byte("other"))
		m.Name = blobName(m.Digest)
	}
	wrong := slices.Clone(members)
	wrong[1].Digest = members[0].Digest
	stripped := members[:len(members)-1]
	for _, c := range []struct {
		name string
		file []byte
		want Code
	}{
		{"empty", nil, ErrFormat},
		{"gzip", []byte("\x1f\x8b\x08\x00 and so on"), ErrFormat},
		{"plain tar", tarOf(t, honest()), ErrFormat},
		{"skippable frame first", slices.Concat(skippable, b), ErrFormat},
		{"skippable frame between members", slices.Concat(b[:last.Offset], skippable, b[last.Offset:]), ErrEnd},
		{"skippable frame instead of the index", slices.Concat(b[:frameAt], skippable), ErrTruncated},
		{"skippable frame before the index", slices.Concat(b[:frameAt], skippable, b[frameAt:]), ErrIndex},
		{"skippable frame after the index", slices.Concat(b, skippable), ErrTrailing},
		{"two indexes", slices.Concat(b, b[frameAt:]), ErrIndex},
		{"trailing byte", slices.Concat(b, []byte{0}), ErrTrailing},
		{"trailing frame", slices.Concat(b, enc.EncodeAll([]byte("more"), nil)), ErrTrailing},
		{"trailing archive", slices.Concat(b, b), ErrIndex},
		{"trailing frame without index", slices.Concat(b[:frameAt], enc.EncodeAll([]byte("more"), nil)), ErrTrailing},
		{"trailing garbage without index", slices.Concat(b[:frameAt], []byte("garbage after it")), ErrFrame},
		{"index of another archive", appendIndexFrame(bytes.Clone(b[:frameAt]), frameAt, other), ErrIndex},
		{"index with another digest for index.json", appendIndexFrame(bytes.Clone(b[:frameAt]), frameAt, wrong), ErrIndex},
		{"index of fewer members", appendIndexFrame(bytes.Clone(b[:frameAt]), frameAt, stripped), ErrIndex},
		{"index cut", b[:len(b)-5], ErrTruncated},
		{"window of 1 GiB", patched(5, 20<<3), ErrWindow},
		{"window of 72 MiB", patched(5, 16<<3|1), ErrWindow},
		{"content size of 2^62", slices.Concat([]byte("\x28\xb5\x2f\xfd\xe0\x00\x00\x00\x00\x00\x00\x00\x40"), b[6:]), ErrWindow},
		{"dictionary", slices.Concat([]byte("\x28\xb5\x2f\xfd\x01\x38\x07"), b[6:]), ErrFrame},
		{"reserved flag", patched(4, 8), ErrFrame},
		{"reserved block", patched(6, b[6]|6), ErrFrame},
		{"block over 128 KiB", patched(8, 0xff), ErrFrame},
	} {
		t.Run(c.name, func(t *testing.T) {
			refused(t, bytes.NewReader(c.file), ExtractOptions{Limit: 4 << 20}, c.want)
		})
	}
	t.Run("cut", func(t *testing.T) {
		for i := range 100 {
			n := len(b) * i / 100
			err := Extract(t.Context(), bytes.NewReader(b[:n]), filepath.Join(t.TempDir(), "out"), ExtractOptions{Limit: 4 << 20})
			if !errors.Is(err, ErrTruncated) && !errors.Is(err, ErrEnd) && (n > 0 || !errors.Is(err, ErrFormat)) {
				t.Errorf("cut at %d of %d: %v", n, len(b), err)
			}
		}
	})
}

func TestBombs(t *testing.T) {
	enc, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	head := tarOf(t, honest()[:4])
	head = head[:len(head)-endData]
	t.Run("300 MiB of zeros in a blob", func(t *testing.T) {
		h, err := tarHeader(blobName(digestOf(nil)), 300<<20)
		if err != nil {
			t.Fatal(err)
		}
		bomb := slices.Concat(appendRawFrame(nil, head), appendRawFrame(nil, h), bytes.Repeat(enc.EncodeAll(make([]byte, 10<<20), nil), 30))
		refused(t, bytes.NewReader(bomb), ExtractOptions{Limit: 1 << 30}, ErrDigest)
		refused(t, bytes.NewReader(bomb), ExtractOptions{Limit: 299 << 20}, ErrLimit)
	})
	t.Run("endless zeros", func(t *testing.T) {
		r, w := io.Pipe()
		frame := enc.EncodeAll(make([]byte, 10<<20), nil)
		go func() {
			_, err := w.Write(appendRawFrame(nil, head))
			for err == nil {
				_, err = w.Write(frame)
			}
		}()
		refused(t, r, ExtractOptions{Limit: 1 << 30}, ErrTrailing)
		r.Close()
	})
	t.Run("window of 64 MiB", func(t *testing.T) {
		w, err := zstd.NewWriter(nil, zstd.WithWindowSize(64<<20), zstd.WithSingleSegment(false))
		if err != nil {
			t.Fatal(err)
		}
		big := w.EncodeAll(slices.Concat(head, make([]byte, 100<<20)), nil)
		refused(t, bytes.NewReader(big), ExtractOptions{Limit: 1 << 30}, ErrTrailing)
	})
	t.Run("ten million members", func(t *testing.T) {
		head := tarOf(t, honest()[:2]) // the head's blobs need not be sorted
		head = head[:len(head)-endData]
		r, w := io.Pipe()
		go func() {
			_, err := w.Write(appendRawFrame(nil, head))
			for i := 0; err == nil && i < 10_000_000; i++ {
				data := binary.BigEndian.AppendUint32(nil, uint32(i))
				e := goodBlob(data)
				h, _ := tarHeader(e.Name, e.Size)
				_, err = w.Write(appendRawFrame(nil, slices.Concat(h, data, make([]byte, paddingLen(4)))))
			}
			w.CloseWithError(err)
		}()
		refused(t, r, ExtractOptions{Limit: 1 << 30}, ErrLimit)
		r.Close()
	})
}
