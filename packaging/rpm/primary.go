package rpm

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/mensylisir/kubexm/packaging"
)

// The XML namespaces of createrepo.
const (
	commonSpace    = "http://linux.duke.edu/metadata/common"
	rpmSpace       = "http://linux.duke.edu/metadata/rpm"
	filelistsSpace = "http://linux.duke.edu/metadata/filelists"
)

// entry is one package of primary.
type entry struct {
	packaging.Package
	files []owned  // files that are listed in primary
	odd   []string // reasons why the package cannot be used
}

// owned is a file of a package; its kind is "", "dir" or "ghost".
type owned struct{ path, kind string }

// readPrimary returns the packages for which keep returns true, in the order of the file.
func readPrimary(r io.Reader, keep func(name, arch string) bool) ([]*entry, error) {
	all, err := openElements(r, "metadata", commonSpace, true)
	if err != nil {
		return nil, err
	}
	var out []*entry
	words := map[string]string{}
	for n := 1; ; n++ {
		element, err := all.next("metadata")
		if element == nil || err != nil {
			return out, err
		}
		e := &entry{}
		err = all.read(element, words, func(d tokens, _ xml.StartElement) (err error) {
			e, err = readPackage(d)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("package %d, %s: %w", n, e.Name, unexpected(err))
		}
		if keep(e.Name, e.Arch) {
			e.Record = bytes.Clone(element)
			out = append(out, e)
		}
	}
}

var errDirective = errors.New("it declares a document type, which is not allowed in metadata")

// unexpected converts io.EOF to io.ErrUnexpectedEOF.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// openRoot reads up to the root element. If parts of the document will be copied into
// another one, namespace prefixes must have their standard meaning.
func openRoot(d *xml.Decoder, name, space string, copied bool) error {
	for {
		token, err := d.Token()
		if err != nil {
			return unexpected(err)
		}
		switch token := token.(type) {
		case xml.Directive:
			return errDirective
		case xml.StartElement:
			if token.Name.Local != name || token.Name.Space != space {
				return fmt.Errorf("its root is %s of %q, not %s of %q", token.Name.Local, token.Name.Space, name, space)
			}
			for _, a := range token.Attr {
				if copied && a.Name.Space == "xmlns" && (a.Name.Local != "rpm" || a.Value != rpmSpace) {
					return fmt.Errorf("it declares xmlns:%s=%q, which is not a namespace of yum repositories", a.Name.Local, a.Value)
				}
			}
			return nil
		}
	}
}

// end returns an error if anything follows the root element.
func end(d *xml.Decoder) error {
	for {
		token, err := d.Token()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		switch token.(type) {
		case xml.Comment, xml.CharData, xml.ProcInst:
		default:
			return errors.New("it continues after its root element")
		}
	}
}

// readPackage parses a package element; the name is set even if it returns an error.
func readPackage(d tokens) (*entry, error) {
	e := &entry{}
	err := children(d, func(s xml.StartElement) error {
		switch s.Name.Local {
		case "name":
			return text(d, &e.Name)
		case "arch":
			return text(d, &e.Arch)
		case "version":
			e.Version = evr(attribute(s, "epoch"), attribute(s, "ver"), attribute(s, "rel"))
		case "checksum":
			return e.checksum(d, s)
		case "size":
			n, err := strconv.ParseInt(attribute(s, "package"), 10, 64)
			if err != nil || n < 0 {
				return fmt.Errorf("size %q", attribute(s, "package"))
			}
			e.Size = n
		case "location":
			e.Location = attribute(s, "href")
			for _, a := range s.Attr {
				if a.Name.Local == "base" && a.Value != "" {
					e.odd = append(e.odd, "its file is at another address: "+a.Value)
				}
			}
		case "format":
			return e.format(d)
		}
		return d.Skip()
	})
	if err != nil {
		return e, err
	}
	return e, e.check()
}

// children calls f for each child of the current element; f must read to the child's end.
func children(d tokens, f func(xml.StartElement) error) error {
	for {
		token, err := d.Token()
		if err != nil {
			return unexpected(err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			if err := f(token); err != nil {
				return err
			}
		case xml.EndElement:
			return nil
		case xml.Directive:
			return errDirective
		}
	}
}

// text reads an element's text to its end.
func text(d tokens, into *string) error {
	var b []byte
	for {
		token, err := d.Token()
		if err != nil {
			return unexpected(err)
		}
		switch token := token.(type) {
		case xml.CharData:
			b = append(b, token...)
		case xml.EndElement:
			*into = string(b)
			return nil
		case xml.StartElement:
			return fmt.Errorf("element %s inside of text", token.Name.Local)
		case xml.Directive:
			return errDirective
		}
	}
}

// attribute returns the value of an attribute without a namespace.
func attribute(s xml.StartElement, name string) string {
	for _, a := range s.Attr {
		if a.Name.Local == name && a.Name.Space == "" {
			return a.Value
		}
	}
	return ""
}

// evr formats a version like rpm: without the epoch if it is 0, and without a missing
// release.
func evr(epoch, ver, rel string) string {
	s := ver
	if epoch != "" && epoch != "0" {
		s = epoch + ":" + s
	}
	if rel != "" {
		s += "-" + rel
	}
	return s
}
