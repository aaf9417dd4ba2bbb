package audit

import (
	"bytes"
	"errors"
	"io"
)

// mostTorn is how many lines in a row may have been cut off: a run that is killed
// while it says that one was leaves two.
const mostTorn = 8

// errForeign says that a log ends in what no kubexm wrote.
var errForeign = errors.New("it does not end in lines of an audit log")

// tail finds the last line that is whole, and what was cut off behind it, each
// line for itself. open says that the last of these has no end of line yet. A log
// without any line gives nothing.
func tail(f io.ReaderAt, size int64) (last Head, torn [][]byte, open bool, err error) {
	for n := min(size, 64<<10); ; n = min(size, 4*n) {
		b := make([]byte, n)
		if _, err := f.ReadAt(b, size-n); err != nil && !errors.Is(err, io.EOF) {
			return last, nil, false, err
		}
		last, torn, open, found := lastOf(b, n == size)
		switch {
		case len(torn) > mostTorn:
			return last, nil, false, errForeign
		case found:
			return last, torn, open, nil
		}
	}
}

// lastOf is tail for the end of a log; whole says that it is all of it. It is
// found where the last whole line lies in b, or there is none.
func lastOf(b []byte, whole bool) (last Head, torn [][]byte, open, found bool) {
	lines := bytes.Split(b, []byte("\n"))
	if rest := lines[len(lines)-1]; len(rest) > 0 {
		torn, open = append(torn, rest), true
	}
	lines = lines[:len(lines)-1]
	for i := len(lines) - 1; i >= 0; i-- {
		if i == 0 && !whole {
			return last, nil, false, false // it may begin before b
		}
		if x, ok := parse(lines[i]); ok {
			return Head{Lines: x.N, SHA256: hashOf(lines[i])}, torn, open, true
		}
		torn = append([][]byte{lines[i]}, torn...)
	}
	return last, torn, open, whole
}
