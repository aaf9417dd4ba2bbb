package runner

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"sync"
	"unicode/utf8"
)

// The exit statuses of the scripts.
const (
	exitAbsent   = 44 // the requested object does not exist
	exitShort    = 45 // the input has another size than announced
	exitDigest   = 46 // the input has another digest than announced
	exitNotEmpty = 47
	exitExists   = 48
)

// ErrShort means that a file was transferred incompletely. The existing file is unchanged.
var ErrShort = errors.New("the transferred file is incomplete")

// ErrNotEmpty means that a folder is not empty.
var ErrNotEmpty = errors.New("folder is not empty")

// ErrExists means that a job of that name already exists.
var ErrExists = errors.New("already exists")

// ErrTruncated means that the output of a program exceeded the limit.
var ErrTruncated = errors.New("the output exceeds the limit")

// ErrTooLarge means that a file is larger than LargestFile.
var ErrTooLarge = errors.New("file is too large to read into memory")

// DigestError means that the bytes on the host are not those that were sent.
type DigestError struct {
	Path, Want string
	Got        string // empty if unknown
}

func (e *DigestError) Error() string {
	if e.Got == "" {
		return fmt.Sprintf("%s: the transferred file does not have sha256 %s", e.Path, e.Want)
	}
	return fmt.Sprintf("%s: sha256 is %s, want %s", e.Path, e.Got, e.Want)
}

// Advice states what to check.
func (e *DigestError) Advice() string {
	return "check the host's memory and disk: the digest was correct when the file was sent"
}

// CmdError is a command that ended with an unexpected exit status. All text in it is
// redacted.
type CmdError struct {
	Verb   string   // connector.VerbExec for any program
	Argv   []string // the complete argv of a program; only the arguments of the runner's own commands
	Exit   int
	Stderr string // the end of the standard error
	Stdout string // the end of the standard output: some programs print errors there
}

// Refused reports whether err is a *CmdError: the command ran on the host and failed. It
// returns false for errors of the connection and for timeouts.
func Refused(err error) bool {
	var cmd *CmdError
	return errors.As(err, &cmd)
}

// maxErrorText is the maximum length of a command's output in an error, in bytes.
const maxErrorText = 300

// Error returns one line: the command, its exit status, and the end of its output.
func (e *CmdError) Error() string {
	name := e.Verb
	if e.Verb == "exec" && len(e.Argv) > 0 {
		name = path.Base(e.Argv[0])
	} else if len(e.Argv) > 0 {
		name += " " + e.Argv[0]
	}
	s := fmt.Sprintf("%s: exit %d", name, e.Exit)
	text := lastLines(e.Stderr)
	if text == "" {
		text = lastLines(e.Stdout)
	}
	if text != "" {
		s += ": " + text
	}
	return s
}

// lastLines returns the end of a program's output, on one line.
func lastLines(s string) string {
	var lines []string
	size := 0
	all := strings.FieldsFunc(s, func(r rune) bool { return r == '\n' || r == '\r' })
	for i := len(all) - 1; i >= 0 && len(lines) < 3; i-- {
		l := strings.TrimSpace(all[i])
		if l == "" {
			continue
		}
		if size += len(l); size > maxErrorText && len(lines) > 0 {
			break
		}
		lines = append([]string{l}, lines...)
	}
	out := strings.Join(lines, "; ")
	if len(out) > maxErrorText {
		cut := len(out) - maxErrorText
		for cut < len(out) && !utf8.RuneStart(out[cut]) {
			cut++
		}
		out = "…" + out[cut:]
	}
	return out
}

// absent returns a PathError with fs.ErrNotExist for name.
func absent(op, name string) error {
	return &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
}

// exited reports whether err is a *CmdError with that exit status.
func exited(err error, status int) bool {
	var c *CmdError
	return errors.As(err, &c) && c.Exit == status
}

// syncWriter serializes the writes of two streams to one writer.
type syncWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (t *syncWriter) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.w.Write(b)
}
