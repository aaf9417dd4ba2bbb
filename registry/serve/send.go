package serve

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// piece is a blob in a response.
type piece struct {
	digest string
	size   int64
	media  string
}

// chunk is the number of bytes that are held back until the following bytes were read.
const chunk = 128 << 10

// document is the maximum size in bytes of blobs that are read completely before they are sent,
// such as manifests and package lists. They are not subject to limits.
const document = 512 << 10

// send serves a blob, or the requested range of it.
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
	status, wanted := http.StatusOK, span{0, p.size}
	if asked := r.Header.Get("Range"); asked != "" && p.size > 0 && (r.Header.Get("If-Range") == "" || r.Header.Get("If-Range") == etag) {
		s, known, ok := parseRange(asked, p.size)
		switch {
		case known && !ok:
			refuseRange(w, p.size)
			return
		case known:
			status, wanted = http.StatusPartialContent, s
			header.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", s.from, s.to-1, p.size))
		}
	}
	header.Set("Content-Type", p.media)
	header.Set("Content-Length", strconv.FormatInt(wanted.to-wanted.from, 10))
	if r.Method == http.MethodHead {
		w.WriteHeader(status)
		return
	}
	out := &answer{w: w, control: http.NewResponseController(w), status: status}
	err := h.answer(r, p, wanted, out)
	var gone *goneError
	switch {
	case err == nil:
		return
	case errors.Is(err, errBusy):
		header.Set("Retry-After", "5")
		refuse(w, http.StatusTooManyRequests, codeTooMany, err.Error())
		return
	case errors.As(err, &gone) || r.Context().Err() != nil:
		return // the client has disconnected or is too slow
	}
	h.log.ErrorContext(r.Context(), "damaged or unreadable", "blob", p.digest, "path", r.URL.Path, "error", err.Error())
	if !out.began {
		refuse(w, http.StatusInternalServerError, codeUnknown, "the bundle is damaged: "+p.digest)
	}
	// Otherwise fewer bytes than Content-Length were sent, and net/http closes the connection.
}

func refuseRange(w http.ResponseWriter, size int64) {
	w.Header().Set("Content-Length", "0")
	w.Header().Set("Content-Range", fmt.Sprintf("bytes */%d", size))
	w.WriteHeader(http.StatusRequestedRangeNotSatisfiable)
}

// answer writes a range of a blob. A small blob is read completely before it is sent. For a
// larger one the request waits until limits allow its address to read.
func (h *Handler) answer(r *http.Request, p piece, want span, out io.Writer) error {
	if p.size <= document {
		var text bytes.Buffer
		if err := h.read(r.Context(), p, want, &text); err != nil {
			return err
		}
		_, err := out.Write(text.Bytes())
		return err
	}
	leave, err := h.limits.enter(r.Context(), addressOf(r.RemoteAddr))
	if err != nil {
		return err
	}
	defer leave()
	if sums := h.parts.get(p.digest); sums != nil && want != (span{0, p.size}) {
		return h.readParts(r.Context(), p, want, sums, out)
	}
	return h.read(r.Context(), p, want, out)
}

// read reads a complete blob, which verifies it, and writes the range want. The last chunk of
// the range is written after the verification.
func (h *Handler) read(ctx context.Context, p piece, want span, out io.Writer) error {
	rc, size, err := h.src.Blob(p.digest)
	if err != nil {
		return err
	}
	defer rc.Close()
	if size != p.size {
		return fmt.Errorf("%d bytes, expected %d", size, p.size)
	}
	var src io.Reader = rc
	var sums summing
	if want != (span{0, p.size}) && p.size > document { // further range requests are likely
		src = io.TeeReader(rc, &sums)
	}
	next, held := make([]byte, chunk), make([]byte, 0, chunk)
	for at := int64(0); ; {
		n, err := io.ReadFull(src, next)
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
				return fmt.Errorf("%d bytes, expected %d", at, p.size)
			}
			if sums.end(); sums.all != nil {
				h.parts.put(p.digest, sums.all)
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

// goneError means that writing to the client failed.
type goneError struct{ err error }

func (e *goneError) Error() string { return "write: " + e.err.Error() }

// answer writes the status with the first byte: until then an error response is possible.
type answer struct {
	w       http.ResponseWriter
	control *http.ResponseController
	status  int
	began   bool
	since   time.Time // time of the first byte
	sent    int64
}

// Write sends chunks, each with a deadline. A client may pause for the time stalled, and must
// read with at least the rate slowest in total.
func (a *answer) Write(p []byte) (n int, err error) {
	for len(p) > 0 {
		piece := p[:min(len(p), chunk)]
		now := time.Now()
		if !a.began {
			a.since = now
		}
		end := a.since.Add(grace + time.Duration(a.sent+int64(len(piece)))*time.Second/slowest)
		if soon := now.Add(stalled); soon.Before(end) {
			end = soon
		}
		_ = a.control.SetWriteDeadline(end) // not supported by the writers of some tests
		if !a.began {
			a.began = true
			a.w.WriteHeader(a.status)
		}
		k, err := a.w.Write(piece)
		n, a.sent = n+k, a.sent+int64(k)
		if err != nil {
			return n, &goneError{err}
		}
		p = p[k:]
	}
	return n, nil
}

// span is a range of bytes; to is exclusive.
type span struct{ from, to int64 }

// of returns the part of p that is in s; at is the offset of p.
func (s span) of(p []byte, at int64) []byte {
	from, to := max(s.from-at, 0), min(s.to-at, int64(len(p)))
	if from >= to {
		return nil
	}
	return p[from:to]
}

// parseRange parses a Range header with one range. known is false for other units and for
// several ranges: these are answered with the complete blob. ok is false if the range begins
// after the end.
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

// matches reports whether a list of entity tags contains etag.
func matches(list, etag string) bool {
	for tag := range strings.SplitSeq(list, ",") {
		if tag = strings.TrimPrefix(strings.TrimSpace(tag), "W/"); tag == etag || tag == "*" {
			return true
		}
	}
	return false
}
