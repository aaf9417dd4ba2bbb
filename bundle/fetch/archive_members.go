package fetch

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// limits bound the resources that an untrusted archive can use.
type limits struct {
	entries  int   // number of entries in an archive
	member   int64 // bytes of one selected entry
	total    int64 // bytes of all entries, unpacked
	metadata int64 // bytes of one file of a package repository during pinning
}

// defaultLimits leave ample room for published archives: the largest one known, Harbor's
// offline installer, has less than 2 GiB in some twenty entries. The limit of metadata is
// for packages, whose own signatures may have to be checked.
func defaultLimits() limits {
	return limits{entries: 100_000, member: 2 << 30, total: 8 << 30, metadata: 4 << 30}
}

// extraction extracts selected entries of a tar. It never creates a file with a name from
// the archive.
type extraction struct {
	path   string
	format string
	limits limits
	create func(ctx context.Context, selected string) (entryFile, error) // the file of a selected name

	entries map[string]tarEntry  // all entries of the archive
	files   map[string]entryFile // the extracted files, by entry name
	found   map[string]entryFile // the extracted files, by selected name
}

// entryFile receives one extracted entry.
type entryFile interface {
	// receive reads the complete entry.
	receive(ctx context.Context, r io.Reader) error
	digest() string // sha256 in hex
	length() int64
	commit() error
	abort()
}

// tarEntry describes one name in an archive.
type tarEntry struct {
	kind  byte   // tar's typeflag
	link  string // target of a link, as an entry name; "" if outside the archive
	count int    // number of entries with this name
}

// run extracts the selected entries. A selected entry may be a link to a file in the same
// archive; such a file is extracted in a second pass.
func (x *extraction) run(ctx context.Context, wanted []string) error {
	x.entries, x.files, x.found = map[string]tarEntry{}, map[string]entryFile{}, map[string]entryFile{}
	take := map[string]string{} // entry name → selected name
	for _, w := range wanted {
		name, err := entryName(w)
		if err != nil {
			return fmt.Errorf("selected entry: %w", err)
		}
		take[name] = w
	}
	if err := x.walk(ctx, func(name string, h *tar.Header, r io.Reader) error {
		x.note(name, h)
		if selected, ok := take[name]; ok && regular(h) {
			return x.take(ctx, name, selected, r)
		}
		return nil
	}); err != nil {
		return err
	}
	sources, linked := map[string]string{}, map[string]string{}
	for _, w := range wanted {
		name, _ := entryName(w) // checked above
		file, err := x.follow(name)
		if err != nil {
			return err
		}
		sources[w] = file
		if x.files[file] == nil {
			linked[file] = w
		}
	}
	if len(linked) > 0 {
		if err := x.walk(ctx, func(name string, h *tar.Header, r io.Reader) error {
			if selected, ok := linked[name]; ok && regular(h) {
				return x.take(ctx, name, selected, r)
			}
			return nil
		}); err != nil {
			return err
		}
	}
	for w, file := range sources {
		x.found[w] = x.files[file]
	}
	return nil
}

// walk reads the complete archive and calls visit for each entry.
func (x *extraction) walk(ctx context.Context, visit func(name string, h *tar.Header, r io.Reader) error) error {
	f, err := os.Open(x.path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // opened for reading only
	unpacked, err := unpacker(x.format, f)
	if err != nil {
		return err
	}
	defer unpacked.Close()
	limited := &boundedReader{r: unpacked, left: x.limits.total, limit: x.limits.total}
	t := tar.NewReader(limited)
	for n := 0; ; n++ {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			// Read to the end: the compression's checksum is there.
			_, err := copyBytes(ctx, io.Discard, limited)
			return err
		}
		if err != nil {
			return err
		}
		if n >= x.limits.entries {
			return fmt.Errorf("more than %d entries", x.limits.entries)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		name, err := entryName(h.Name)
		if err != nil {
			return err
		}
		if err := visit(name, h, t); err != nil {
			return err
		}
	}
}

// unpacker returns the decompressor for a format.
func unpacker(format string, r io.Reader) (io.ReadCloser, error) {
	switch format {
	case "tar":
		return io.NopCloser(r), nil
	case "tar.gz", "tgz":
		return gzip.NewReader(r)
	case "tar.zst":
		// Without these options a frame may require any amount of memory.
		z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(64<<20))
		if err != nil {
			return nil, err
		}
		return z.IOReadCloser(), nil
	}
	return nil, fmt.Errorf("unknown format %q; the known formats are tar, tar.gz, tgz and tar.zst", format)
}

// note records an entry, for links and for advice.
func (x *extraction) note(name string, h *tar.Header) {
	e := tarEntry{kind: h.Typeflag, count: x.entries[name].count + 1}
	switch h.Typeflag {
	case tar.TypeLink: // the target is an entry name
		if target, err := entryName(h.Linkname); err == nil {
			e.link = target
		}
	case tar.TypeSymlink: // relative to its own folder
		target := path.Join(path.Dir(name), h.Linkname) //nolint:gosec // compared with entry names, never opened
		if !path.IsAbs(h.Linkname) && target != ".." && !strings.HasPrefix(target, "../") {
			e.link = target
		}
	}
	x.entries[name] = e
}

// take copies one file, which is the content of a selected name.
func (x *extraction) take(ctx context.Context, name, selected string, r io.Reader) error {
	if x.files[name] != nil {
		return fmt.Errorf("%s occurs twice", name)
	}
	w, err := x.create(ctx, selected)
	if err != nil {
		return err
	}
	x.files[name] = w
	limited := &boundedReader{r: r, left: x.limits.member, limit: x.limits.member}
	if err := w.receive(ctx, limited); err != nil {
		return fmt.Errorf("entry %s: %w", name, err)
	}
	return nil
}

// maxLinks is the maximum length of a chain of links; it also ends a cycle.
const maxLinks = 8

// follow returns the file at name, or the file that the link at name resolves to.
func (x *extraction) follow(name string) (string, error) {
	at := name
	for range maxLinks {
		e, ok := x.entries[at]
		switch {
		case !ok && at == name:
			return "", fmt.Errorf("has no entry %s%s", name, x.similar(name))
		case !ok:
			return "", fmt.Errorf("entry %s links to %s, which is not in the archive", name, at)
		case e.count > 1:
			return "", fmt.Errorf("%s occurs twice", at)
		case e.kind == tar.TypeReg:
			return at, nil
		case e.kind != tar.TypeLink && e.kind != tar.TypeSymlink:
			return "", fmt.Errorf("entry %s is not a regular file", at)
		case e.link == "":
			return "", fmt.Errorf("entry %s links outside the archive", at)
		}
		at = e.link
	}
	return "", fmt.Errorf("entry %s is a link that reaches no file after %d steps", name, maxLinks)
}

func regular(h *tar.Header) bool { return h.Typeflag == tar.TypeReg }

// commit stores the extracted files as blobs.
func (x *extraction) commit() error {
	for name, w := range x.files {
		if err := w.commit(); err != nil {
			return fmt.Errorf("entry %s: %w", name, err)
		}
	}
	return nil
}

// abort discards uncommitted files.
func (x *extraction) abort() {
	for _, w := range x.files {
		w.abort()
	}
}

// entryName returns an entry's name without a leading "./". A name that points outside the
// archive is an error even if the entry is not selected: no valid archive has one.
func entryName(s string) (string, error) {
	if s == "" || path.IsAbs(s) || strings.Contains(s, "\x00") {
		return "", fmt.Errorf("name %q is not a relative file name", s)
	}
	for e := range strings.SplitSeq(s, "/") {
		if e == ".." {
			return "", fmt.Errorf("name %q points outside the archive", s)
		}
	}
	return path.Clean(s), nil
}

// boundedReader is like io.LimitReader, but returns an error instead of io.EOF at the
// limit.
type boundedReader struct {
	r           io.Reader
	left, limit int64
}

// Read returns an error when the limit is exceeded.
func (b *boundedReader) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return n, fmt.Errorf("unpacks to more than %d bytes", b.limit)
	}
	return n, err
}
