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

// Filter chooses lines of a log; the zero Filter chooses all.
type Filter struct {
	Hosts []string  // any of these
	Step  string    // a part of the step's id, as "kubeadm." or "join-worker"
	Since time.Time // not before
	// Changes leaves looks out.
	Changes bool
}

// chooses tells whether x is one of those that f asks for.
func (f Filter) chooses(x Line) bool {
	switch {
	case len(f.Hosts) > 0 && !slices.Contains(f.Hosts, x.Host),
		f.Step != "" && !strings.Contains(x.Step, f.Step),
		x.Time.Before(f.Since),
		f.Changes && x.Look:
		return false
	}
	return true
}

// Show hands on the lines of a log that f chooses, in their order, each with the
// text that it stands there with. A command that ended is one line: that it began
// is shown only where its end is not on record. Lines that make no sense are
// passed over; Verify tells of them.
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
		if x.Type == TypeBegin && ended[x.N] || !f.chooses(x) {
			return nil
		}
		return show(x, text)
	})
}

// each hands on the lines that make sense.
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
