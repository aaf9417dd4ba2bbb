package upstream

import (
	"context"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Fault is one way in which an upstream misbehaves. Its fields can be combined: a slow answer
// may be cut off as well.
type Fault struct {
	// Times is the number of affected requests, 0 for all.
	Times int
	// Status answers without content: 429, 503, 404. RetryAfter is sent with it as a header,
	// in seconds or as a date.
	Status     int
	RetryAfter string
	// Delay passes before the first byte.
	Delay time.Duration
	// Rate is the maximum number of bytes per second, 0 for no limit.
	Rate int64
	// CutAfter closes the connection after this many bytes of the body; -1 before the first, 0
	// never.
	CutAfter int64
	// Spoil changes the byte at SpoilAt.
	Spoil   bool
	SpoilAt int64
	// NoRange sends the complete content even if a range was requested.
	NoRange bool
}

// Count counts the requests for one path.
type Count struct {
	Requests int   // GET and HEAD requests, including refused ones
	Bytes    int64 // bytes of bodies that were sent
	Size     int64 // size of the content, in bytes; 0 if there is none
}

// Break makes the answers at path misbehave as described by f. A path that ends in "/" applies
// to everything below it; the longest match counts. Paths are the server's:
// "/dl.k8s.io/release/…", "/v2/registry.k8s.io/pause/blobs/…".
func (s *Server) Break(path string, f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults[path] = &f
}

// Mend removes every fault.
func (s *Server) Mend() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.faults)
}

// Counts returns the counts since the start or the last Forget, by path.
func (s *Server) Counts() map[string]Count {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.counts)
}

// Forget resets all counts.
func (s *Server) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.counts)
}

// begin counts a request for at and returns the fault that applies to it.
func (s *Server) begin(at string) Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.counts[at]
	c.Requests++
	s.counts[at] = c
	f := s.faults[at]
	for dir := at; f == nil && dir != ""; {
		dir = strings.TrimSuffix(dir, "/")
		dir = dir[:strings.LastIndex(dir, "/")+1]
		f = s.faults[dir]
	}
	if f == nil {
		return Fault{}
	}
	now := *f
	if f.Times > 0 {
		if f.Times--; f.Times == 0 {
			f.Times = -1
		}
	} else if f.Times < 0 {
		return Fault{}
	}
	return now
}

// answer waits as f requires, and reports whether it answered instead of the server.
func (f Fault) answer(m *meter) bool {
	if f.Delay > 0 {
		wait(m.ctx, f.Delay)
	}
	if f.Status != 0 {
		if f.RetryAfter != "" {
			m.Header().Set("Retry-After", f.RetryAfter)
		}
		http.Error(m, "this upstream was told to answer "+strconv.Itoa(f.Status), f.Status)
		return true
	}
	if f.CutAfter < 0 {
		panic(http.ErrAbortHandler) // net/http closes the connection
	}
	return false
}

// spoil returns c with the byte that f changes.
func (f Fault) spoil(c Content) Content {
	if !f.Spoil {
		return c
	}
	return spoiled{Content: c, at: f.SpoilAt}
}

// spoiled is content with one changed byte.
type spoiled struct {
	Content
	at int64
}

// ReadAt implements io.ReaderAt.
func (s spoiled) ReadAt(p []byte, off int64) (int, error) {
	n, err := s.Content.ReadAt(p, off)
	if in := s.at - off; in >= 0 && in < int64(n) {
		p[in] ^= 0x01
	}
	return n, err
}

// meter counts the sent bytes and applies the fault. It exists for one request.
type meter struct {
	http.ResponseWriter
	ctx   context.Context //nolint:containedctx // the request's, and no longer
	s     *Server
	at    string
	fault Fault
	sent  int64
}

// Write implements io.Writer.
func (m *meter) Write(p []byte) (int, error) {
	f := m.fault
	if f.Rate > 0 {
		wait(m.ctx, time.Duration(float64(len(p))/float64(f.Rate)*float64(time.Second)))
	}
	cut := f.CutAfter > 0 && m.sent+int64(len(p)) >= f.CutAfter
	if cut {
		p = p[:f.CutAfter-m.sent]
	}
	// Counted before sending: a client that has the last byte finds it counted.
	m.count(len(p))
	n, err := m.ResponseWriter.Write(p)
	m.count(n - len(p))
	m.sent += int64(n)
	if cut {
		_ = http.NewResponseController(m.ResponseWriter).Flush()
		panic(http.ErrAbortHandler)
	}
	return n, err
}

func (m *meter) count(n int) {
	m.s.mu.Lock()
	defer m.s.mu.Unlock()
	c := m.s.counts[m.at]
	c.Bytes += int64(n)
	m.s.counts[m.at] = c
}

func (m *meter) size(n int64) {
	m.s.mu.Lock()
	defer m.s.mu.Unlock()
	c := m.s.counts[m.at]
	c.Size = n
	m.s.counts[m.at] = c
}
