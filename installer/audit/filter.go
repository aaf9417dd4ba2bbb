package audit

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"time"
)

// Filter selects lines of a log; the zero Filter selects all.
type Filter struct {
	Hosts []string  // any of these
	Step  string    // substring of the step's id, such as "kubeadm." or "join-worker"
	Since time.Time // lines from this time on
	// ChangesOnly leaves out commands that change nothing.
	ChangesOnly bool
}

// matches reports whether f selects x.
func (f Filter) matches(x Line) bool {
	switch {
	case len(f.Hosts) > 0 && !slices.Contains(f.Hosts, x.Host),
		f.Step != "" && !strings.Contains(x.Step, f.Step),
		x.Time.Before(f.Since),
		f.ChangesOnly && x.ReadOnly:
		return false
	}
	return true
}

// Show calls show for the lines of a log that f selects, in their order, each with its raw
// text. A command that ended is one line: its begin line is shown only if its end is not
// recorded. Invalid lines are skipped; Verify reports them.
func Show(r io.ReadSeeker, f Filter, show func(x Line, text []byte) error) error {
	ended := map[int64]bool{}
	err := each(r, func(x Line, _ []byte) error {
		if x.Began > 0 {
			ended[x.Began] = true
		}
		return nil
	})
	if err != nil {
		return err
	}
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return each(r, func(x Line, text []byte) error {
		if x.Type == TypeBegin && ended[x.N] || !f.matches(x) {
			return nil
		}
		return show(x, text)
	})
}

// each calls do for the valid lines.
func each(r io.Reader, do func(x Line, text []byte) error) error {
	lines := bufio.NewReaderSize(r, 64<<10)
	for {
		b, err := lines.ReadBytes('\n')
		text := bytes.TrimSuffix(b, []byte("\n"))
		if x, ok := parse(text); ok {
			if err := do(x, text); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
