package rpm

import (
	"bufio"
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
)

// maxElement is the maximum size of a package element in bytes. The largest of the common
// distributions, a kernel in filelists, has about 2 MB.
const maxElement = 64 << 20

var errElementTooLong = errors.New("the element of one package is too long")

// elements splits a document into its package elements.
type elements struct {
	r    *bufio.Reader
	kept []byte
}

// openElements reads the document up to the end of the root element's tag.
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

// tag reads to the next ">", and returns that text; it also stays in the buffer.
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

// next returns the next complete package element, which is valid until the next call; nil
// at the end of the document.
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
		return nil, fmt.Errorf("%.40q is not a package element", first)
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

// end returns an error if anything follows the root element.
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
			return errors.New("it continues after its root element")
		}
	}
}

// read calls f with the tokens of an element, after its start tag. It uses the fast
// scanner, and xml.Decoder for elements that the scanner does not support.
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
		return errors.New("an element has an unexpected start")
	}
	if err := f(d, start); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("an element continues after its end")
	}
	return nil
}
