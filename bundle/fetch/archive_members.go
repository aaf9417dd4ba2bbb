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

// limits bound what an archive may make of itself, and what is read before anything
// is known of it.
type limits struct {
	entries  int   // names in an archive
	member   int64 // bytes of one wanted member
	total    int64 // bytes of the whole, unpacked
	metadata int64 // bytes of one file of a repository of packages, while they are pinned
}

// defaultLimits leave ample room for what upstreams publish: the largest archive
// known, Harbor's offline installer, has less than 2 GiB in some twenty entries. Of
// packages those are the longest whose own signatures are looked at.
func defaultLimits() limits {
	return limits{entries: 100_000, member: 2 << 30, total: 8 << 30, metadata: 4 << 30}
}

// extraction takes wanted members out of a tar. Nothing is ever written under a
// name that an archive gives.
type extraction struct {
	cache  *Cache
	path   string
	format string
	limits limits

	entries map[string]tarEntry    // everything in the archive
	files   map[string]*blobWriter // the files taken out, by their own names
	found   map[string]*blobWriter // by the wanted names
}

// tarEntry is one name of an archive.
type tarEntry struct {
	kind  byte   // tar's typeflag
	link  string // where a link leads, as a name of the archive; "" if out of it
	count int    // how often the name occurs
}

// run takes the wanted members out. A wanted name may be a link to a file in the
// same archive; for the file that it leads to the archive is read a second time.
func (x *extraction) run(ctx context.Context, wanted []string) error {
	x.entries, x.files, x.found = map[string]tarEntry{}, map[string]*blobWriter{}, map[string]*blobWriter{}
	take := map[string]bool{}
	for _, w := range wanted {
		name, err := entryName(w)
		if err != nil {
			return fmt.Errorf("wanted member: %w", err)
		}
		take[name] = true
	}
	if err := x.walk(ctx, func(name string, h *tar.Header, r io.Reader) error {
		x.note(name, h)
		if take[name] && regular(h) {
			return x.take(ctx, name, r)
		}
		return nil
	}); err != nil {
		return err
	}
	sources, linked := map[string]string{}, map[string]bool{}
	for _, w := range wanted {
		name, _ := entryName(w) // was checked above
		file, err := x.follow(name)
		if err != nil {
			return err
		}
		sources[w] = file
		if x.files[file] == nil {
			linked[file] = true
		}
	}
	if len(linked) > 0 {
		if err := x.walk(ctx, func(name string, h *tar.Header, r io.Reader) error {
			if linked[name] && regular(h) {
				return x.take(ctx, name, r)
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

// walk reads the whole archive and calls visit for each entry.
func (x *extraction) walk(ctx context.Context, visit func(name string, h *tar.Header, r io.Reader) error) error {
	f, err := os.Open(x.path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // it was only read
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
			// What follows the end holds the checksum of the whole.
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

// unpacker undoes the compression.
func unpacker(format string, r io.Reader) (io.ReadCloser, error) {
	switch format {
	case "tar":
		return io.NopCloser(r), nil
	case "tar.gz", "tgz":
		return gzip.NewReader(r)
	case "tar.zst":
		// Without these a frame may ask for any amount of memory.
		z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(64<<20))
		if err != nil {
			return nil, err
		}
		return z.IOReadCloser(), nil
	}
	return nil, fmt.Errorf("format %q is not known; known are tar, tar.gz, tgz and tar.zst", format)
}

// note remembers an entry, for links and for advice.
func (x *extraction) note(name string, h *tar.Header) {
	e := tarEntry{kind: h.Typeflag, count: x.entries[name].count + 1}
	switch h.Typeflag {
	case tar.TypeLink: // names another entry
		if target, err := entryName(h.Linkname); err == nil {
			e.link = target
		}
	case tar.TypeSymlink: // relative to its own folder
		target := path.Join(path.Dir(name), h.Linkname) //nolint:gosec // compared with names of the archive, never opened
		if !path.IsAbs(h.Linkname) && target != ".." && !strings.HasPrefix(target, "../") {
			e.link = target
		}
	}
	x.entries[name] = e
}

// take copies one file into a blob.
func (x *extraction) take(ctx context.Context, name string, r io.Reader) error {
	if x.files[name] != nil {
		return fmt.Errorf("%s occurs twice", name)
	}
	w, err := x.cache.newBlob()
	if err != nil {
		return err
	}
	x.files[name] = w
	limited := &boundedReader{r: r, left: x.limits.member, limit: x.limits.member}
	if _, err := copyBytes(ctx, w, limited); err != nil {
		return fmt.Errorf("member %s: %w", name, err)
	}
	return nil
}

// maxLinks bounds a chain of links; it also ends a circle.
const maxLinks = 8

// follow gives the file that name is or, as a link, leads to.
func (x *extraction) follow(name string) (string, error) {
	at := name
	for range maxLinks {
		e, ok := x.entries[at]
		switch {
		case !ok && at == name:
			return "", fmt.Errorf("has no member %s%s", name, x.near(name))
		case !ok:
			return "", fmt.Errorf("member %s leads to %s, which is not in the archive", name, at)
		case e.count > 1:
			return "", fmt.Errorf("%s occurs twice", at)
		case e.kind == tar.TypeReg:
			return at, nil
		case e.kind != tar.TypeLink && e.kind != tar.TypeSymlink:
			return "", fmt.Errorf("member %s is no regular file", at)
		case e.link == "":
			return "", fmt.Errorf("member %s is a link out of the archive", at)
		}
		at = e.link
	}
	return "", fmt.Errorf("member %s is a link that leads nowhere after %d steps", name, maxLinks)
}

func regular(h *tar.Header) bool { return h.Typeflag == tar.TypeReg }

// commit makes blobs of the files taken out.
func (x *extraction) commit() error {
	for name, w := range x.files {
		if err := w.commit(); err != nil {
			return fmt.Errorf("member %s: %w", name, err)
		}
	}
	return nil
}

// abort throws away what was not committed.
func (x *extraction) abort() {
	for _, w := range x.files {
		w.abort()
	}
}

// entryName gives an archive's name in one form, without "./" before it. A name
// that would lead out of a folder is refused even where nobody follows it: no
// honest archive has one.
func entryName(s string) (string, error) {
	if s == "" || path.IsAbs(s) || strings.Contains(s, "\x00") {
		return "", fmt.Errorf("name %q is not that of a file in a folder", s)
	}
	for e := range strings.SplitSeq(s, "/") {
		if e == ".." {
			return "", fmt.Errorf("name %q leads out of the archive", s)
		}
	}
	return path.Clean(s), nil
}

// boundedReader fails where io.LimitReader would end: too much is not the end.
type boundedReader struct {
	r           io.Reader
	left, limit int64
}

// Read reads on as long as the bound is not passed.
func (b *boundedReader) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return n, fmt.Errorf("unpacks to more than %d bytes", b.limit)
	}
	return n, err
}
