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

// The exit statuses by which the scripts say what happened.
const (
	exitAbsent   = 44 // what was asked for is not there
	exitShort    = 45 // fewer or more bytes came than were announced
	exitDigest   = 46 // the bytes are not those that were announced
	exitNotEmpty = 47
	exitExists   = 48
)

// ErrShort says that a file did not arrive whole. The file in its place is as it was.
var ErrShort = errors.New("the file did not arrive whole")

// ErrNotEmpty says that a folder holds something.
var ErrNotEmpty = errors.New("folder is not empty")

// ErrExists says that a job of that name exists already.
var ErrExists = errors.New("exists already")

// ErrTruncated says that a program printed more than is kept of its output.
var ErrTruncated = errors.New("it printed more than is read into memory")

// ErrTooLarge says that a file is larger than what may be read into memory.
var ErrTooLarge = errors.New("file is too large to be read whole")

// DigestError says that the bytes on the host are not those that were sent.
type DigestError struct {
	Path, Want string
	Got        string // empty where it is not known
}

func (e *DigestError) Error() string {
	if e.Got == "" {
		return fmt.Sprintf("%s: what arrived is not sha256 %s", e.Path, e.Want)
	}
	return fmt.Sprintf("%s: sha256 is %s, want %s", e.Path, e.Got, e.Want)
}

// Advice says what to do.
func (e *DigestError) Advice() string {
	return "check the host's memory and disk: the bytes were right when they were sent"
}

// CmdError is a command that ended with an exit status that was not expected.
// All text in it is redacted.
type CmdError struct {
	Verb   string   // connector.VerbExec for any program
	Argv   []string // of a program all, of the runner's own commands their arguments
	Exit   int
	Stderr string // the end of it, whole lines and more
	Stdout string // the end of it: some programs complain there
}

// Refused tells whether err is a command's own answer: it ran on the host, and ended as
// it should not. It is not where the host was not reached, or time was up.
func Refused(err error) bool {
	var cmd *CmdError
	return errors.As(err, &cmd)
}

// longestText is how much of what a command said goes into one line.
const longestText = 300

// Error gives one line: who, how it ended, and the last that it said.
func (e *CmdError) Error() string {
	who := e.Verb
	if e.Verb == "exec" && len(e.Argv) > 0 {
		who = path.Base(e.Argv[0])
	} else if len(e.Argv) > 0 {
		who += " " + e.Argv[0]
	}
	s := fmt.Sprintf("%s: exit %d", who, e.Exit)
	text := lastLines(e.Stderr)
	if text == "" {
		text = lastLines(e.Stdout)
	}
	if text != "" {
		s += ": " + text
	}
	return s
}

// lastLines gives the end of what a program printed, on one line.
func lastLines(s string) string {
	var lines []string
	size := 0
	all := strings.FieldsFunc(s, func(r rune) bool { return r == '\n' || r == '\r' })
	for i := len(all) - 1; i >= 0 && len(lines) < 3; i-- {
		l := strings.TrimSpace(all[i])
		if l == "" {
			continue
		}
		if size += len(l); size > longestText && len(lines) > 0 {
			break
		}
		lines = append([]string{l}, lines...)
	}
	out := strings.Join(lines, "; ")
	if len(out) > longestText {
		cut := len(out) - longestText
		for cut < len(out) && !utf8.RuneStart(out[cut]) {
			cut++
		}
		out = "…" + out[cut:]
	}
	return out
}

// absent gives fs.ErrNotExist for what name says.
func absent(op, name string) error {
	return &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
}

// exited tells whether err is a CmdError with that status.
func exited(err error, status int) bool {
	var c *CmdError
	return errors.As(err, &c) && c.Exit == status
}

// together lets two streams write to one place, one write at a time.
type together struct {
	mu sync.Mutex
	w  io.Writer
}

func (t *together) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.w.Write(b)
}
