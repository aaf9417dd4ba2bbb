package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// piece is one blob as it is answered with.
type piece struct {
	digest string
	size   int64
	media  string
}

// stalled is how long a client may take for one chunk before it is given up.
const stalled = 2 * time.Minute

// chunk is how much is held back until what follows it was read.
const chunk = 128 << 10

// send answers with a blob, or the one range of it that is asked for.
func (h *Handler) send(w http.ResponseWriter, r *http.Request, p piece) {
	header := w.Header()
	etag := `"` + p.digest + `"`
	header.Set("Docker-Content-Digest", p.digest)
	header.Set("Etag", etag)
	header.Set("Accept-Ranges", "bytes")
	if matches(r.Header.Get("If-None-Match"), etag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	status, part := http.StatusOK, span{0, p.size}
	if asked := r.Header.Get("Range"); asked != "" && p.size > 0 && (r.Header.Get("If-Range") == "" || r.Header.Get("If-Range") == etag) {
		s, known, ok := parseRange(asked, p.size)
		switch {
		case known && !ok:
			refuseRange(w, p.size)
			return
		case known:
			status, part = http.StatusPartialContent, s
			header.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", s.from, s.to-1, p.size))
		}
	}
	header.Set("Content-Type", p.media)
	header.Set("Content-Length", strconv.FormatInt(part.to-part.from, 10))
	if r.Method == http.MethodHead {
		w.WriteHeader(status)
		return
	}
	out := &answer{w: w, control: http.NewResponseController(w), status: status}
	err := h.read(r.Context(), p, part, out)
	if err == nil {
		return
	}
	var gone *goneError
	if errors.As(err, &gone) || r.Context().Err() != nil {
		return // the client's own doing
	}
	h.log.ErrorContext(r.Context(), "damaged or unreadable", "blob", p.digest, "path", r.URL.Path, "error", err.Error())
	if !out.began {
		refuse(w, http.StatusInternalServerError, codeUnknown, "the bundle is damaged: "+p.digest)
	}
	// Else fewer bytes were sent than announced: net/http closes the connection.
}

func refuseRange(w http.ResponseWriter, size int64) {
	w.Header().Set("Content-Length", "0")
	w.Header().Set("Content-Range", fmt.Sprintf("bytes */%d", size))
	w.WriteHeader(http.StatusRequestedRangeNotSatisfiable)
}

// read reads a blob from its beginning to its end, so that all of it is checked,
// and writes the part that is wanted. The last of it is written when the end was
// found to be right.
func (h *Handler) read(ctx context.Context, p piece, want span, out io.Writer) error {
	select {
	case h.slots <- struct{}{}:
		defer func() { <-h.slots }()
	case <-ctx.Done():
		return ctx.Err()
	}
	rc, size, err := h.src.Blob(p.digest)
	if err != nil {
		return err
	}
	defer rc.Close()
	if size != p.size {
		return fmt.Errorf("%d bytes, and %d are expected", size, p.size)
	}
	next, held := make([]byte, chunk), make([]byte, 0, chunk)
	for at := int64(0); ; {
		n, err := io.ReadFull(rc, next)
		if part := want.of(next[:n], at); len(part) > 0 {
			if _, err := out.Write(held); err != nil {
				return err
			}
			held = append(held[:0], part...)
		}
		at += int64(n)
		switch {
		case err == io.EOF, err == io.ErrUnexpectedEOF:
			if at != p.size {
				return fmt.Errorf("%d bytes, and %d are expected", at, p.size)
			}
			_, err = out.Write(held)
			return err
		case err != nil:
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		}
	}
}

// goneError says that the client takes no more.
type goneError struct{ err error }

func (e *goneError) Error() string { return "write: " + e.err.Error() }

// answer begins the answer at the first byte: until then it can be an error.
type answer struct {
	w       http.ResponseWriter
	control *http.ResponseController
	status  int
	began   bool
}

func (a *answer) Write(p []byte) (int, error) {
	if len(p) == 0 && a.began {
		return 0, nil
	}
	// A writer without deadlines, such as a test's, does without.
	_ = a.control.SetWriteDeadline(time.Now().Add(stalled))
	if len(p) == 0 {
		return 0, nil
	}
	if !a.began {
		a.began = true
		a.w.WriteHeader(a.status)
	}
	n, err := a.w.Write(p)
	if err != nil {
		return n, &goneError{err}
	}
	return n, nil
}

// span is a range of bytes, without its end.
type span struct{ from, to int64 }

// of gives what of p, which lies at an offset, is in s.
func (s span) of(p []byte, at int64) []byte {
	from, to := max(s.from-at, 0), min(s.to-at, int64(len(p)))
	if from >= to {
		return nil
	}
	return p[from:to]
}

// parseRange reads one range of bytes. It is not known where it is of another
// unit, or several: these are answered in full. It is not ok where it begins
// beyond the end.
func parseRange(text string, size int64) (s span, known, ok bool) {
	spec, is := strings.CutPrefix(text, "bytes=")
	if !is || strings.Contains(spec, ",") {
		return span{}, false, false
	}
	first, last, is := strings.Cut(strings.TrimSpace(spec), "-")
	if !is {
		return span{}, false, false
	}
	if first == "" {
		n, err := strconv.ParseUint(last, 10, 63)
		if err != nil {
			return span{}, false, false
		}
		return span{max(size-int64(n), 0), size}, true, n > 0
	}
	from, err := strconv.ParseUint(first, 10, 63)
	if err != nil {
		return span{}, false, false
	}
	s = span{int64(from), size}
	if last != "" {
		to, err := strconv.ParseUint(last, 10, 63)
		if err != nil || to < from {
			return span{}, false, false
		}
		s.to = min(int64(to), size-1) + 1
	}
	return s, true, s.from < size
}

// matches tells whether a list of entity tags names one.
func matches(list, etag string) bool {
	for tag := range strings.SplitSeq(list, ",") {
		if tag = strings.TrimPrefix(strings.TrimSpace(tag), "W/"); tag == etag || tag == "*" {
			return true
		}
	}
	return false
}
