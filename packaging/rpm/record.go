package rpm

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/packaging"
)

var errNoRecord = errors.New("it has no record")

// edit replaces the text between two offsets of a record.
type edit struct {
	from, to int64
	text     string
}

// relocated returns a package's record with a new location, and with the files that other
// packages require. Metadata lists those in a separate file, filelists, but a lock has
// only the record.
func relocated(p *packaging.Package, at string) (string, error) {
	d := xml.NewDecoder(bytes.NewReader(p.Record))
	if _, err := d.Token(); err != nil {
		return "", errNoRecord
	}
	var edits []edit
	seen := map[string]bool{}
	err := children(d, func(s xml.StartElement) error {
		opened := d.InputOffset()
		from := int64(bytes.LastIndexByte(p.Record[:opened], '<'))
		name := s.Name.Local
		if name != "format" {
			if err := d.Skip(); err != nil {
				return err
			}
			if name == "location" && !seen[name] {
				edits = append(edits, edit{from, d.InputOffset(), `<location href="` + escape(at) + `"/>`})
			}
			seen[name] = true
			return nil
		}
		known := &entry{}
		if err := known.format(d); err != nil {
			return err
		}
		if !seen[name] {
			edits = append(edits, more(p, known, from, opened, d.InputOffset()))
		}
		seen[name] = true
		return nil
	})
	switch {
	case err != nil:
		return "", err
	case !seen["location"]:
		return "", errors.New("its record has no location")
	case !seen["format"]:
		return "", errors.New("its record has no format")
	}
	slices.SortFunc(edits, func(a, b edit) int { return cmp.Compare(b.from, a.from) })
	text := string(p.Record)
	for _, e := range edits {
		text = text[:e.from] + e.text + text[e.to:]
	}
	return strings.ToValidUTF8(text, "?"), nil
}

// more appends the files that are not in a package's format element. The offsets are
// those of the element's start, of its content, and of its end.
func more(p *packaging.Package, known *entry, from, opened, over int64) edit {
	var files strings.Builder
	for _, r := range p.Provides {
		knows := slices.ContainsFunc(known.files, func(f owned) bool { return f.path == r.Name }) ||
			slices.ContainsFunc(known.Provides, func(k packaging.Relation) bool { return k.Name == r.Name })
		if strings.HasPrefix(r.Name, "/") && !knows {
			files.WriteString("<file>" + escape(r.Name) + "</file>\n")
		}
	}
	switch end := int64(bytes.LastIndex(p.Record[:over], []byte("</"))); {
	case files.Len() == 0:
		return edit{from, from, ""}
	case over == opened: // <format/>
		return edit{from, over, "<format>\n" + files.String() + "</format>"}
	default:
		return edit{end, end, files.String()}
	}
}

// recorded parses a member's record. It verifies that the record is one record of this
// package, because it comes from a lock file, which is untrusted input.
func recorded(m manifest.Member) (*entry, error) {
	if m.Record == "" {
		return nil, errNoRecord
	}
	all, err := openElements(strings.NewReader("<metadata xmlns=\""+commonSpace+"\" xmlns:rpm=\""+rpmSpace+"\">"+m.Record+"</metadata>"), "metadata", commonSpace, true)
	if err != nil {
		return nil, err
	}
	element, err := all.next("metadata")
	if err != nil {
		return nil, err
	}
	e := &entry{}
	err = all.read(bytes.Clone(element), map[string]string{}, func(d tokens, _ xml.StartElement) (err error) {
		e, err = readPackage(d)
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case string(element) != m.Record:
		return nil, errors.New("its record has more than one element")
	case e.String() != m.Package:
		return nil, fmt.Errorf("its record is for %s", e)
	case e.Location != m.Path || e.Size != m.Size || e.SHA256 != "" && e.SHA256 != m.SHA256:
		return nil, errors.New("its record is for another file")
	}
	return e, nil
}
