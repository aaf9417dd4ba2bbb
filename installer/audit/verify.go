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

// longestLine is how long a line may be: no kubexm writes one of a tenth of it.
const longestLine = 16 << 20

// Anchor is a head that was written down elsewhere.
type Anchor struct {
	Head
	From string // where: the path of a journal, a receipt
}

// Report is what Verify found.
type Report struct {
	Cluster string    `json:"cluster,omitempty"`
	Since   time.Time `json:"since,omitzero"`
	Until   time.Time `json:"until,omitzero"`
	Head    Head      `json:"head"`
	// Commands counts those that ended, Looks those of them that change nothing.
	Commands int `json:"commands"`
	Looks    int `json:"looks"`
	// Open are commands that may change something and of whose end nothing is said:
	// the process was killed, or is at work now. They are the numbers of their lines.
	Open []int64 `json:"open,omitempty"`
	// Torn counts lines that were cut off while they were written.
	Torn int `json:"torn,omitempty"`
	// Vouched is the last line that an anchor knows, by From: what is cut off behind
	// it, or changed in the very last line, nobody can tell.
	Vouched int64  `json:"vouched"`
	From    string `json:"from,omitempty"`
	// Problems say what is wrong, in the order of lines.
	Problems []string `json:"problems,omitempty"`
}

// mostProblems is how many problems are worth reading.
const mostProblems = 50

// Verify reads a log to its end and finds every break of its chain: lines that
// were taken out, changed, moved, written by somebody else, and by the anchors an
// end that was cut off. The error is of reading alone.
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
			return v.Report, fmt.Errorf("what follows line %d is longer than any line of a log", v.Head.Lines)
		case errors.Is(err, io.EOF):
			v.end(b)
			return v.Report, nil
		case err != nil:
			return v.Report, err
		}
		v.line(bytes.TrimSuffix(b, []byte("\n")))
	}
}

// verifier is at one line of a log.
type verifier struct {
	Report
	byLine map[int64][]Anchor
	open   map[int64]bool
	last   string   // the hash of the line before, whatever it was
	torn   []string // the hashes of the lines right before that make no sense
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
	v.chained(x)
	v.Head = Head{Lines: x.N, SHA256: hash}
	v.known(x.N, hash)
	v.count(x)
	v.last, v.torn = hash, nil
}

// parse reads a line. Fields that this kubexm does not know are a newer one's.
func parse(b []byte) (Line, bool) {
	var x Line
	err := json.Unmarshal(b, &x)
	return x, err == nil && x.N > 0 && x.Type != ""
}

// nonsense is about lines that make no sense, without one behind them that says why.
func (v *verifier) nonsense() {
	for i := range v.torn {
		v.problem("line %d is no line of a log, and nothing says that it was cut off", v.Head.Lines-int64(len(v.torn)-1-i))
	}
}

// chained holds x against the line before.
func (v *verifier) chained(x Line) {
	before := v.Head.Lines
	switch {
	case v.read == 1 && (x.Type != TypeHead || x.N != 1 || x.Prev != ""):
		v.problem("the log begins with line %d: what was before is gone", x.N)
		return
	case v.read == 1:
		return
	case x.Type == TypeTorn && x.N == before+1 && x.Prev == v.last && (len(v.torn) == 0 || slices.Equal(x.Torn, v.torn)):
		v.Torn += len(v.torn) // none where a line lacked its end alone
		return
	}
	v.nonsense()
	switch {
	case x.N > before+2:
		v.problem("lines %d to %d are gone", before+1, x.N-1)
	case x.N == before+2:
		v.problem("line %d is gone", before+1)
	case x.N <= before:
		v.problem("line %d stands behind line %d: moved, or there twice", x.N, before)
	case x.Prev != v.last:
		v.problem("line %d is not the one that line %d was written behind: it was changed, or put in", before, x.N)
	}
}

// known holds a line against what is written down elsewhere.
func (v *verifier) known(n int64, hash string) {
	for _, a := range v.byLine[n] {
		if a.SHA256 != hash {
			v.problem("line %d is not the one that %s knows: it was changed since", n, a.From)
			continue
		}
		if n > v.Vouched {
			v.Vouched, v.From = n, a.From
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
		if x.Look {
			v.Looks++
		}
		delete(v.open, x.Began)
	}
}

// end is the end of the log, with what stands there without an end of line.
func (v *verifier) end(rest []byte) {
	switch {
	case len(rest) > 0:
		if x, ok := parse(rest); ok && x.N == v.Head.Lines+1 && x.Prev == v.last {
			v.line(rest) // it lacks its end alone
			break
		}
		// A kill cuts off the last line, and nobody has written since: the next run
		// will say so.
		v.Torn++
	case v.read == 0:
		v.problem("the log is empty")
	}
	v.nonsense()
	var cut []Anchor
	for _, as := range v.byLine {
		cut = append(cut, as...)
	}
	slices.SortFunc(cut, func(a, b Anchor) int { return int(a.Lines - b.Lines) })
	for _, a := range cut {
		if a.Lines > v.Head.Lines {
			v.problem("the end is cut off: %s knows line %d, and the log ends with line %d", a.From, a.Lines, v.Head.Lines)
		} else {
			v.problem("%s knows line %d, which is not there", a.From, a.Lines)
		}
	}
	for n := range v.open {
		v.Open = append(v.Open, n)
	}
	slices.Sort(v.Open)
}
