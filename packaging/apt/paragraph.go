package apt

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// paragraphs reads the format of Debian's control files: paragraphs of fields, separated
// by empty lines. Only one paragraph is in memory at a time.
type paragraphs struct {
	in    *bufio.Reader
	limit int // bytes of one paragraph
	line  int // lines read so far
	text  []byte
}

func newParagraphs(r io.Reader, limit int) *paragraphs {
	return &paragraphs{in: bufio.NewReaderSize(r, 64<<10), limit: limit}
}

// next returns a paragraph unchanged, with its last newline, and the number of its first
// line. The text is valid until the next call. After the last paragraph the error is
// io.EOF.
func (p *paragraphs) next() (text []byte, first int, err error) {
	p.text = p.text[:0]
	for {
		begin := len(p.text)
		chunk, err := p.in.ReadSlice('\n')
		p.text = append(p.text, chunk...)
		for errors.Is(err, bufio.ErrBufferFull) && len(p.text) <= p.limit {
			chunk, err = p.in.ReadSlice('\n')
			p.text = append(p.text, chunk...)
		}
		line := p.text[begin:]
		if len(line) > 0 {
			p.line++
		}
		switch {
		case len(p.text) > p.limit:
			return nil, 0, fmt.Errorf("line %d: the paragraph is longer than %d bytes", p.line, p.limit)
		case err != nil && !errors.Is(err, io.EOF):
			return nil, 0, err
		}
		if len(bytes.TrimSpace(line)) == 0 {
			p.text = p.text[:begin]
			if begin > 0 {
				return p.text, first, nil
			}
		} else if first == 0 {
			first = p.line
		}
		if err != nil && len(p.text) == 0 {
			return nil, 0, io.EOF
		}
	}
}

// field is one field of a paragraph.
type field struct {
	name  []byte
	value []byte // with continuation lines, each with its newline and first space
	line  int    // counted from the paragraph's first, which is 0
}

// eachField iterates over the fields of a paragraph in order. Lines that begin with "#"
// are comments. It returns an error for a line that is neither a field nor a continuation.
func eachField(text []byte, yield func(field) error) error {
	var f field
	end := 0 // of the value, where no comment stands in it
	flush := func() error {
		if len(f.name) == 0 {
			return nil
		}
		f.value = bytes.TrimRight(f.value, "\n\r\t ")
		return yield(f)
	}
	for at, n := 0, 0; at < len(text); n++ {
		stop := len(text)
		if i := bytes.IndexByte(text[at:], '\n'); i >= 0 {
			stop = at + i + 1
		}
		line := text[at:stop:stop]
		switch line[0] {
		case '#':
		case ' ', '\t':
			switch {
			case len(f.name) == 0:
				return fmt.Errorf("line %d is a continuation without a field", n+1)
			case at == end:
				f.value = text[at-len(f.value) : stop : stop]
				end = stop
			default:
				f.value = append(f.value, line...)
				end = -1 // it lies elsewhere from here on
			}
		default:
			if err := flush(); err != nil {
				return err
			}
			colon := bytes.IndexByte(line, ':')
			if colon <= 0 || bytes.ContainsAny(line[:colon], " \t\r\n") {
				return fmt.Errorf("line %d is not a field: %.40q", n+1, line)
			}
			f = field{name: line[:colon], value: bytes.TrimLeft(line[colon+1:], " \t"), line: n}
			end = stop
		}
		at = stop
	}
	return flush()
}
