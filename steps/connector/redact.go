package connector

import (
	"io"
	"slices"
	"strings"
	"sync"
)

// shortestLine is the minimum length of a line of a multi-line secret that is masked by
// itself: output is often split into lines before it is shown.
const shortestLine = 8

// Redactor masks known secrets in text for people. The zero value and nil mask nothing. It
// is safe for concurrent use; secrets may be added at any time.
type Redactor struct {
	mu sync.RWMutex
	t  *table
}

// table is a fixed set of secrets.
type table struct {
	secrets []string
	byFirst [256][]string // the longest first
	longest int
	mask    string
}

// NewRedactor returns a Redactor that masks secrets. It ignores empty ones.
func NewRedactor(secrets ...string) *Redactor {
	r := &Redactor{}
	r.Add(secrets...)
	return r
}

// Add adds secrets. The lines of a multi-line secret are masked as well, except short ones.
func (r *Redactor) Add(secrets ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []string
	if r.t != nil {
		all = slices.Clone(r.t.secrets)
	}
	for _, s := range secrets {
		all = append(all, s)
		if trimmed := strings.TrimSpace(s); trimmed != s {
			all = append(all, trimmed)
		}
		if lines := strings.FieldsFunc(s, func(c rune) bool { return c == '\n' || c == '\r' }); len(lines) > 1 {
			for _, l := range lines {
				// The first and last line of a PEM block are not secret, and useful to the reader.
				if len(l) >= shortestLine && !strings.HasPrefix(l, "-----") {
					all = append(all, l)
				}
			}
		}
	}
	r.t = newTable(all)
}

// With returns a Redactor that masks secrets and those of r. It does not change r.
func (r *Redactor) With(secrets ...string) *Redactor {
	if len(secrets) == 0 && r != nil {
		return r
	}
	return NewRedactor(append(slices.Clone(r.table().secrets), secrets...)...)
}

func (r *Redactor) table() *table {
	if r != nil {
		r.mu.RLock()
		defer r.mu.RUnlock()
		if r.t != nil {
			return r.t
		}
	}
	return &table{}
}

func newTable(secrets []string) *table {
	slices.Sort(secrets)
	secrets = slices.Compact(secrets)
	t := &table{mask: maskFor(secrets)}
	for _, s := range secrets {
		if s == "" {
			continue
		}
		t.secrets = append(t.secrets, s)
		t.byFirst[s[0]] = append(t.byFirst[s[0]], s)
		t.longest = max(t.longest, len(s))
	}
	for _, ss := range t.byFirst {
		slices.SortFunc(ss, func(a, b string) int { return len(b) - len(a) })
	}
	return t
}

// maskFor returns three asterisks, or three of another character if a secret contains an
// asterisk: otherwise the mask and the text around it could form a secret.
func maskFor(secrets []string) string {
	for c := byte('*'); c < 0x7f; c++ {
		if !slices.ContainsFunc(secrets, func(s string) bool { return strings.IndexByte(s, c) >= 0 }) {
			return strings.Repeat(string(c), 3)
		}
	}
	return "***"
}

// match returns the length of the longest secret that b begins with.
func (t *table) match(b []byte) int {
	for _, s := range t.byFirst[b[0]] {
		if len(b) >= len(s) && string(b[:len(s)]) == s {
			return len(s)
		}
	}
	return 0
}

// String returns s with every secret masked. Overlapping secrets become one mask.
func (r *Redactor) String(s string) string {
	t := r.table()
	if t.longest == 0 {
		return s
	}
	st := state{table: t}
	return string(st.flush([]byte(s), len(s)))
}

// Argv returns argv with every secret masked.
func (r *Redactor) Argv(argv []string) []string {
	out := make([]string, len(argv))
	for i, a := range argv {
		out[i] = r.String(a)
	}
	return out
}

// Writer returns a writer that masks secrets and writes to w, also if a secret is split
// across writes. It buffers fewer bytes than the longest secret has. Close writes them to
// w, and does not close w.
func (r *Redactor) Writer(w io.Writer) io.WriteCloser {
	return &redacting{w: w, state: state{table: r.table()}}
}

// state is the masking state of a stream.
type state struct {
	*table
	covered int  // number of the next bytes that belong to a secret
	masked  bool // the last byte belonged to a secret whose mask is written
}

// flush returns the first n bytes of b, masked. Every secret that begins in them must end
// in b.
func (s *state) flush(b []byte, n int) []byte {
	out := make([]byte, 0, n)
	for i := range n {
		s.covered = max(s.covered, s.match(b[i:]))
		switch {
		case s.covered == 0:
			out, s.masked = append(out, b[i]), false
			continue
		case !s.masked:
			out, s.masked = append(out, s.mask...), true
		}
		s.covered--
	}
	return out
}

type redacting struct {
	w    io.Writer
	hold []byte
	state
}

func (r *redacting) Write(p []byte) (int, error) {
	if r.longest == 0 {
		return r.w.Write(p)
	}
	r.hold = append(r.hold, p...)
	n := len(r.hold) - r.longest + 1
	if n <= 0 {
		return len(p), nil
	}
	out := r.flush(r.hold, n)
	r.hold = append(r.hold[:0], r.hold[n:]...)
	if _, err := r.w.Write(out); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Close writes the buffered bytes.
func (r *redacting) Close() error {
	out := r.flush(r.hold, len(r.hold))
	r.hold = nil
	if len(out) == 0 {
		return nil
	}
	_, err := r.w.Write(out)
	return err
}
