package bundle

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"

	"github.com/mensylisir/kubexm/bundle/archive"
	"github.com/mensylisir/kubexm/bundle/fetch"
)

// sources are the places on this machine that a build takes blobs from: the cache, and the
// bundles that earlier builds wrote.
type sources struct {
	cache   *fetch.Cache
	readers []*archive.Reader

	mu     sync.Mutex
	in     map[string]*archive.Reader // by digest, of the blobs in bundles
	frames map[*archive.Reader]bool   // of those bundles, the ones with the same compressor
}

// maxSources limits the bundles that are opened: their indexes are in memory.
const maxSources = 32

// openSources opens the bundles that the cache remembers; one that cannot be opened is passed
// over, because everything in it can be downloaded.
func openSources(ctx context.Context, c *fetch.Cache, log *slog.Logger) (*sources, error) {
	s := &sources{cache: c, in: map[string]*archive.Reader{}, frames: map[*archive.Reader]bool{}}
	known, err := c.Archives()
	if err != nil {
		return nil, err
	}
	for _, a := range known[:min(len(known), maxSources)] {
		r, err := archive.Open(a.Path)
		if err != nil {
			log.DebugContext(ctx, "a remembered bundle cannot be read", "path", a.Path, "error", err)
			continue
		}
		s.readers = append(s.readers, r)
		s.frames[r] = a.Compressor != "" && a.Compressor == archive.Compressor()
		for _, m := range r.Members() {
			if _, ok := s.in[m.Digest]; !ok && m.Digest != "" {
				s.in[m.Digest] = r
			}
		}
	}
	return s, nil
}

func (s *sources) close() error {
	var errs []error
	for _, r := range s.readers {
		errs = append(errs, r.Close())
	}
	return errors.Join(errs...)
}

// has reports whether a blob can be read here.
func (s *sources) has(b archive.Blob) bool {
	return s.cache.Has(hexOf(b.Digest), b.Size) || s.bundle(b.Digest) != nil
}

func (s *sources) bundle(digest string) *archive.Reader {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.in[digest]
}

// open opens a blob. What the reader checks itself is Checked: blobs that were hashed when
// they were written in this run, and those of bundles, which are hashed while they are read.
func (s *sources) open(b archive.Blob) (io.ReadCloser, error) {
	name := hexOf(b.Digest)
	if r := s.bundle(b.Digest); r != nil && !s.cache.Has(name, b.Size) {
		if s.frames[r] && b.Compress {
			f, err := r.Frames(b.Digest)
			if err != nil {
				return nil, &sourceError{err}
			}
			if f != nil {
				return f, nil
			}
		}
		rc, _, err := r.Blob(b.Digest)
		if err != nil {
			return nil, &sourceError{err}
		}
		return archive.Checked{ReadCloser: fromBundle{rc}}, nil
	}
	f, err := s.cache.Open(name)
	if err != nil {
		return nil, err
	}
	if s.cache.Fresh(name) {
		return archive.Checked{ReadCloser: f}, nil
	}
	return f, nil
}

// discard forgets a blob whose content turned out to be wrong.
func (s *sources) discard(digest string) error {
	s.mu.Lock()
	delete(s.in, digest)
	s.mu.Unlock()
	return s.cache.Discard(hexOf(digest))
}

// sourceError is a failure to read a remembered bundle.
type sourceError struct{ error }

// Unwrap returns the cause.
func (e *sourceError) Unwrap() error { return e.error }

// fromBundle reads a blob of a remembered bundle.
type fromBundle struct{ io.ReadCloser }

// Read marks failures, so that they are not taken for failures of the archive being written.
func (f fromBundle) Read(p []byte) (int, error) {
	n, err := f.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		err = &sourceError{err}
	}
	return n, err
}
