package audit

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
)

// longestLine limits the length of a line: kubexm writes none of a tenth of it.
const longestLine = 16 << 20

// Anchor is a head that was recorded elsewhere.
type Anchor struct {
	Head
	From string // where: the path of a journal or a receipt
}

// Report is the result of Verify.
type Report struct {
	Cluster string    `json:"cluster,omitempty"`
	Since   time.Time `json:"since,omitzero"`
	Until   time.Time `json:"until,omitzero"`
	Head    Head      `json:"head"`
	// Commands counts the commands that ended, ReadOnly those of them that change nothing.
	Commands int `json:"commands"`
	ReadOnly int `json:"looks"`
	// Open are the line numbers of commands that may change something and whose end is not
	// recorded: the process was killed, or is still running.
	Open []int64 `json:"open,omitempty"`
	// Torn counts lines that were truncated while being written.
	Torn int `json:"torn,omitempty"`
	// Confirmed is the last line that an anchor confirms, and From that anchor. Lines cut off
	// after it, or a change of the very last line, cannot be detected.
	Confirmed int64  `json:"vouched"`
	From      string `json:"from,omitempty"`
	// Problems describe what is wrong, in the order of lines.
	Problems []string `json:"problems,omitempty"`
}

// mostProblems limits the number of reported problems.
const mostProblems = 50

// Verify reads a log to its end and finds every break of its chain: lines that were removed,
// changed, moved or inserted, and, with the anchors, an end that was cut off. The error is
// only for reading.
func Verify(r io.Reader, anchors []Anchor) (Report, error) {
	v := verifier{byLine: map[int64][]Anchor{}, open: map[int64]bool{}}
	for _, a := range anchors {
		v.byLine[a.Lines] = append(v.byLine[a.Lines], a)
	}
	lines := bufio.NewReaderSize(r, 64<<10)
	for {
		b, err := lines.ReadBytes('\n')
		switch {
		case len(b) > longestLine:
			return v.Report, fmt.Errorf("the line after line %d is longer than any audit log line", v.Head.Lines)
		case errors.Is(err, io.EOF):
			v.end(b)
			return v.Report, nil
		case err != nil:
			return v.Report, err
		}
		v.line(bytes.TrimSuffix(b, []byte("\n")))
	}
}

// verifier is the state of Verify at one line.
type verifier struct {
	Report
	byLine map[int64][]Anchor
	open   map[int64]bool
	last   string   // the hash of the previous line, valid or not
	torn   []string // the hashes of the invalid lines directly before
	read   int64
}

func (v *verifier) problem(format string, args ...any) {
	if len(v.Problems) < mostProblems {
		v.Problems = append(v.Problems, fmt.Sprintf(format, args...))
	}
}

func (v *verifier) line(b []byte) {
	v.read++
	hash := hashOf(b)
	x, ok := parse(b)
	if !ok {
		v.last, v.torn = hash, append(v.torn, hash)
		v.Head = Head{Lines: v.Head.Lines + 1, SHA256: hash}
		return
	}
	v.checkChain(x)
	v.Head = Head{Lines: x.N, SHA256: hash}
	v.checkAnchors(x.N, hash)
	v.count(x)
	v.last, v.torn = hash, nil
}

// parse decodes a line. It ignores unknown fields, which come from newer versions.
func parse(b []byte) (Line, bool) {
	var x Line
	err := json.Unmarshal(b, &x)
	return x, err == nil && x.N > 0 && x.Type != ""
}

// reportInvalid reports invalid lines that no later line records as truncated.
func (v *verifier) reportInvalid() {
	for i := range v.torn {
		v.problem("line %d is not an audit log line, and no later line records that it was truncated", v.Head.Lines-int64(len(v.torn)-1-i))
	}
}

// checkChain checks x against the previous line.
func (v *verifier) checkChain(x Line) {
	before := v.Head.Lines
	switch {
	case v.read == 1 && (x.Type != TypeHead || x.N != 1 || x.Prev != ""):
		v.problem("the log begins with line %d: the lines before it are missing", x.N)
		return
	case v.read == 1:
		return
	case x.Type == TypeTorn && x.N == before+1 && x.Prev == v.last && (len(v.torn) == 0 || slices.Equal(x.Torn, v.torn)):
		v.Torn += len(v.torn) // none if a line lacked only its line end
		return
	}
	v.reportInvalid()
	switch {
	case x.N > before+2:
		v.problem("lines %d to %d are missing", before+1, x.N-1)
	case x.N == before+2:
		v.problem("line %d is missing", before+1)
	case x.N <= before:
		v.problem("line %d follows line %d: it was moved or duplicated", x.N, before)
	case x.Prev != v.last:
		v.problem("line %d is not the line that line %d refers to: it was changed or inserted", before, x.N)
	}
}

// checkAnchors checks a line against the anchors.
func (v *verifier) checkAnchors(n int64, hash string) {
	for _, a := range v.byLine[n] {
		if a.SHA256 != hash {
			v.problem("line %d does not have the hash recorded in %s: it was changed since", n, a.From)
			continue
		}
		if n > v.Confirmed {
			v.Confirmed, v.From = n, a.From
		}
	}
	delete(v.byLine, n)
}

func (v *verifier) count(x Line) {
	if x.Type == TypeHead && v.Cluster == "" {
		v.Cluster, v.Since = x.Cluster, x.Time
	}
	v.Until = x.Time
	switch x.Type {
	case TypeBegin:
		v.open[x.N] = true
	case TypeDid:
		v.Commands++
		if x.ReadOnly {
			v.ReadOnly++
		}
		delete(v.open, x.Began)
	}
}

// end checks the end of the log, with the rest that has no line end.
func (v *verifier) end(rest []byte) {
	switch {
	case len(rest) > 0:
		if x, ok := parse(rest); ok && x.N == v.Head.Lines+1 && x.Prev == v.last {
			v.line(rest) // it lacks only its line end
			break
		}
		// A kill truncates the last line. The next run will record it.
		v.Torn++
	case v.read == 0:
		v.problem("the log is empty")
	}
	v.reportInvalid()
	var cut []Anchor
	for _, as := range v.byLine {
		cut = append(cut, as...)
	}
	slices.SortFunc(cut, func(a, b Anchor) int { return int(a.Lines - b.Lines) })
	for _, a := range cut {
		if a.Lines > v.Head.Lines {
			v.problem("the end is cut off: %s refers to line %d, and the log ends with line %d", a.From, a.Lines, v.Head.Lines)
		} else {
			v.problem("%s refers to line %d, which does not exist", a.From, a.Lines)
		}
	}
	for n := range v.open {
		v.Open = append(v.Open, n)
	}
	slices.Sort(v.Open)
}
