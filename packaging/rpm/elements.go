package rpm

import (
	"bufio"
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
)

// maxElement is how long the element of one package may be, in bytes. The longest of
// the large distributions, a kernel's, has some 2 MB in filelists.
const maxElement = 64 << 20

var errElementTooLong = errors.New("the element of one package is too long")

// elements cuts a document with an element for each package into these.
type elements struct {
	r    *bufio.Reader
	kept []byte
}

// openElements reads up to the root element, and all of its tag.
func openElements(r io.Reader, root, space string, copied bool) (*elements, error) {
	e := &elements{r: bufio.NewReaderSize(r, 1<<16)}
	for {
		tag, err := e.tag()
		if err != nil {
			return nil, err
		}
		tag = bytes.TrimSpace(tag)
		if bytes.HasPrefix(tag, []byte("<!DOCTYPE")) {
			return nil, errDirective
		}
		if !bytes.HasPrefix(tag, []byte("<?")) && !bytes.HasPrefix(tag, []byte("<!--")) {
			break
		}
	}
	if err := openRoot(xml.NewDecoder(bytes.NewReader(e.kept)), root, space, copied); err != nil {
		return nil, err
	}
	return e, nil
}

// tag reads to the next ">", keeps it, and gives it alone.
func (e *elements) tag() ([]byte, error) {
	from := len(e.kept)
	for {
		piece, err := e.r.ReadSlice('>')
		e.kept = append(e.kept, piece...)
		if len(e.kept) > maxElement {
			return nil, errElementTooLong
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return e.kept[from:], unexpected(err)
		}
	}
}

// next gives the next package's element whole, valid until it is called again; nil
// where the root element is at its end, and nothing comes after it.
func (e *elements) next(root string) ([]byte, error) {
	e.kept = e.kept[:0]
	first, err := e.tag()
	if err != nil {
		return nil, err
	}
	first = bytes.TrimSpace(first)
	blanks := len(e.kept) - len(first)
	switch {
	case bytes.Equal(first, []byte("</"+root+">")):
		return nil, e.end()
	case !bytes.HasPrefix(first, []byte("<package")):
		if bytes.HasPrefix(first, []byte("<!DOCTYPE")) {
			return nil, errDirective
		}
		return nil, fmt.Errorf("%.40q is no package", first)
	}
	for tag := first; ; {
		if bytes.HasSuffix(tag, []byte("</package>")) || len(e.kept) == blanks+len(first) && bytes.HasSuffix(first, []byte("/>")) {
			return e.kept[blanks:], nil
		}
		if tag, err = e.tag(); err != nil {
			return nil, err
		}
	}
}

// end reads what follows the root element, which has to be nothing.
func (e *elements) end() error {
	for {
		b, err := e.r.ReadByte()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if b != ' ' && b != '\n' && b != '\t' && b != '\r' {
			return errors.New("something follows the end of its root element")
		}
	}
}

// read gives an element to f: as fast as may be, and as xml.Decoder reads it where
// it is written otherwise than usual. f begins behind the element's own tag.
func (e *elements) read(element []byte, words map[string]string, f func(tokens, xml.StartElement) error) error {
	err := readElement(newScanner(element, words), f)
	if errors.Is(err, errIrregular) {
		err = readElement(xml.NewDecoder(bytes.NewReader(element)), f)
	}
	return err
}

func readElement(d tokens, f func(tokens, xml.StartElement) error) error {
	token, err := d.Token()
	if err != nil {
		return unexpected(err)
	}
	start, ok := token.(xml.StartElement)
	if !ok {
		return errors.New("an element begins otherwise")
	}
	if err := f(d, start); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("an element goes on behind its end")
	}
	return nil
}
