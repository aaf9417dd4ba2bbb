package conntest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/mensylisir/kubexm/steps/connector"
)

// Recorder passes commands to a real host and records the results, in the order in which
// the commands ended.
type Recorder struct {
	conn     connector.Conn
	redactor *connector.Redactor

	mu  sync.Mutex
	arc txtar.Archive
	n   int
}

// Record returns a Recorder that passes commands to conn. It masks the secrets of redactor,
// which may be nil, and those of each command.
func Record(conn connector.Conn, redactor *connector.Redactor) *Recorder {
	return &Recorder{conn: conn, redactor: redactor}
}

// Exec runs one command and records it.
func (r *Recorder) Exec(ctx context.Context, c connector.Cmd) (connector.Result, error) {
	in := &hashing{Reader: c.Stdin, hash: sha256.New()}
	had := c.Stdin != nil
	if had {
		c.Stdin = in
	}
	res, err := r.conn.Exec(ctx, c)
	e := entry{Verb: c.Verb, Argv: c.Argv, Sudo: c.Sudo, Exit: res.Exit, stdout: res.Stdout, stderr: res.Stderr}
	if had {
		e.Stdin = in.sum()
	}
	if err != nil {
		e.Error = err.Error()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.n++
	e.write(&r.arc, r.n, r.redactor.With(c.Secrets...))
	return res, err
}

// Close closes the connection.
func (r *Recorder) Close() error { return r.conn.Close() }

// Archive returns all recorded commands as a txtar archive.
func (r *Recorder) Archive() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return txtar.Format(&r.arc)
}

// WriteFile writes the Archive to a file.
func (r *Recorder) WriteFile(path string) error {
	return os.WriteFile(path, r.Archive(), 0o644)
}

// hashing hashes what is read. A command that ends early may leave a Read behind.
type hashing struct {
	io.Reader
	mu   sync.Mutex
	hash hash.Hash
}

func (h *hashing) Read(b []byte) (int, error) {
	n, err := h.Reader.Read(b)
	h.mu.Lock()
	defer h.mu.Unlock()
	_, _ = h.hash.Write(b[:n]) // never fails
	return n, err
}

func (h *hashing) sum() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return hex.EncodeToString(h.hash.Sum(nil))
}

// entry is one command and its answer.
type entry struct {
	Verb  string
	Argv  []string
	Sudo  bool
	Stdin string // its SHA-256; empty: there was none
	Exit  int
	Error string

	stdout, stderr []byte
}

// write adds the entry as up to three files: NNN the command, NNN.stdout and
// NNN.stderr what it printed. A stream that txtar cannot hold has .base64 added.
func (e entry) write(arc *txtar.Archive, n int, red *connector.Redactor) {
	name := fmt.Sprintf("%03d", n)
	var b bytes.Buffer
	fmt.Fprintf(&b, "verb %s\n", e.Verb)
	for _, a := range red.Argv(e.Argv) {
		quoted, _ := json.Marshal(a) // a string always marshals
		fmt.Fprintf(&b, "arg %s\n", quoted)
	}
	fmt.Fprintf(&b, "sudo %t\n", e.Sudo)
	if e.Stdin != "" {
		fmt.Fprintf(&b, "stdin %s\n", e.Stdin)
	}
	fmt.Fprintf(&b, "exit %d\n", e.Exit)
	if e.Error != "" {
		quoted, _ := json.Marshal(red.String(e.Error))
		fmt.Fprintf(&b, "error %s\n", quoted)
	}
	arc.Files = append(arc.Files, txtar.File{Name: name, Data: b.Bytes()})
	for _, s := range []struct {
		name string
		data []byte
	}{{"stdout", e.stdout}, {"stderr", e.stderr}} {
		if len(s.data) == 0 {
			continue
		}
		f := txtar.File{Name: name + "." + s.name, Data: []byte(red.String(string(s.data)))}
		if !fits(f.Data) {
			f.Name += ".base64"
			f.Data = []byte(base64.StdEncoding.EncodeToString(f.Data) + "\n")
		}
		arc.Files = append(arc.Files, f)
	}
}

// fits reports whether txtar gives data back as it is: text with whole lines, none
// of which looks like the head of a file.
func fits(data []byte) bool {
	return utf8.Valid(data) && bytes.HasSuffix(data, []byte("\n")) &&
		!bytes.HasPrefix(data, []byte("-- ")) && !bytes.Contains(data, []byte("\n-- ")) && !bytes.Contains(data, []byte("\r"))
}

// readEntries reads an archive back.
func readEntries(b []byte) ([]entry, error) {
	// A head without a name makes the library panic.
	if bytes.Contains(append([]byte("\n"), b...), []byte("\n-- --")) {
		return nil, errors.New("a file without a name")
	}
	var out []entry
	for _, f := range txtar.Parse(b).Files {
		name, stream, part := strings.Cut(f.Name, ".")
		if _, err := strconv.Atoi(name); err != nil {
			return nil, fmt.Errorf("%s: not a number", f.Name)
		}
		if !part {
			e, err := readEntry(f.Data)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", f.Name, err)
			}
			out = append(out, e)
			continue
		}
		data := f.Data
		if plain, coded := strings.CutSuffix(stream, ".base64"); coded {
			var err error
			if data, err = base64.StdEncoding.DecodeString(strings.TrimSpace(string(data))); err != nil {
				return nil, fmt.Errorf("%s: %w", f.Name, err)
			}
			stream = plain
		}
		switch {
		case len(out) == 0:
			return nil, fmt.Errorf("%s: before any command", f.Name)
		case stream == "stdout":
			out[len(out)-1].stdout = data
		case stream == "stderr":
			out[len(out)-1].stderr = data
		default:
			return nil, fmt.Errorf("%s: neither stdout nor stderr", f.Name)
		}
	}
	return out, nil
}

func readEntry(b []byte) (entry, error) {
	var e entry
	for line := range strings.Lines(string(b)) {
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		var err error
		switch key {
		case "verb":
			e.Verb = value
		case "arg":
			var a string
			err = json.Unmarshal([]byte(value), &a)
			e.Argv = append(e.Argv, a)
		case "sudo":
			e.Sudo, err = strconv.ParseBool(value)
		case "stdin":
			e.Stdin = value
		case "exit":
			e.Exit, err = strconv.Atoi(value)
		case "error":
			err = json.Unmarshal([]byte(value), &e.Error)
		default:
			err = errors.New("unknown word")
		}
		if err != nil {
			return entry{}, fmt.Errorf("%q: %w", line, err)
		}
	}
	return e, nil
}
