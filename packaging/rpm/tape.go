package rpm

import (
	"bufio"
	"errors"
	"io"
)

// maxRecord is how long the entry of one package may be, in bytes. The longest of
// the large distributions, a kernel's, has some 2 MB in filelists.
const maxRecord = 64 << 20

var errRecordTooLong = errors.New("the entry of one package is too long")

// tape remembers what was read through it since a place in the stream. It reads
// byte by byte, so that an XML decoder takes no more than what it has decoded.
type tape struct {
	r     *bufio.Reader
	kept  []byte
	start int64 // where in the stream kept begins
}

func newTape(r io.Reader) *tape { return &tape{r: bufio.NewReaderSize(r, 1<<16)} }

// ReadByte gives the next byte, for xml.Decoder.
func (t *tape) ReadByte() (byte, error) {
	b, err := t.r.ReadByte()
	if err != nil {
		return 0, err
	}
	if len(t.kept) >= maxRecord {
		return 0, errRecordTooLong
	}
	t.kept = append(t.kept, b)
	return b, nil
}

// Read is never used by xml.Decoder, which asks for an io.Reader all the same.
func (t *tape) Read(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	c, err := t.ReadByte()
	if err != nil {
		return 0, err
	}
	b[0] = c
	return 1, nil
}

// forget drops what was read before a place in the stream.
func (t *tape) forget(place int64) {
	n := copy(t.kept, t.kept[place-t.start:])
	t.kept, t.start = t.kept[:n], place
}

// between gives a copy of what lies between two places in the stream.
func (t *tape) between(from, to int64) []byte {
	return append([]byte(nil), t.kept[from-t.start:to-t.start]...)
}
