package audit

import (
	"bytes"
	"errors"
	"io"
)

// mostTorn is how many consecutive lines may be truncated: a run that is killed while
// recording a truncated line leaves two.
const mostTorn = 8

// errForeign reports that a log does not end with audit log lines.
var errForeign = errors.New("it does not end with audit log lines")

// tail finds the last valid line, and the truncated lines after it, one by one. open reports
// that the last of these has no line end yet. An empty log returns nothing.
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

// lastOf is tail for the last bytes of a log; complete reports that b is the entire log. found
// reports that the last valid line is in b, or that there is none.
func lastOf(b []byte, complete bool) (last Head, torn [][]byte, open, found bool) {
	lines := bytes.Split(b, []byte("\n"))
	if rest := lines[len(lines)-1]; len(rest) > 0 {
		torn, open = append(torn, rest), true
	}
	lines = lines[:len(lines)-1]
	for i := len(lines) - 1; i >= 0; i-- {
		if i == 0 && !complete {
			return last, nil, false, false // the line may begin before b
		}
		if x, ok := parse(lines[i]); ok {
			return Head{Lines: x.N, SHA256: hashOf(lines[i])}, torn, open, true
		}
		torn = append([][]byte{lines[i]}, torn...)
	}
	return last, torn, open, complete
}
