package rpm

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/xml"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/mensylisir/kubexm/packaging"
)

// File is one file of a repository's metadata.
type File struct {
	Name    string // relative to the repository: "repodata/repomd.xml"
	Content []byte
}

// Place gives where in a written repository a package's file is.
func Place(p *packaging.Package) string { return "Packages/" + path.Base(p.Location) }

// Write gives the metadata of a repository of some packages, each of which Read
// gave and each of which has its file at its Place. Equal packages at an equal time
// give equal bytes. dnf and yum ask for all of primary, filelists and other; the
// latter two have no more in them than what was needed of them.
func Write(packages []*packaging.Package, at time.Time) ([]File, error) {
	packages = slices.Clone(packages)
	slices.SortFunc(packages, func(a, b *packaging.Package) int { return strings.Compare(a.String(), b.String()) })
	places := map[string]*packaging.Package{}
	for _, p := range packages {
		if other := places[Place(p)]; other != nil {
			return nil, fmt.Errorf("%s and %s have the same file name, %s", other, p, path.Base(p.Location))
		}
		places[Place(p)] = p
	}
	var primary, filelists, other bytes.Buffer
	open := func(b *bytes.Buffer, root, spaces string) {
		fmt.Fprintf(b, "%s<%s %s packages=\"%d\">\n", xml.Header, root, spaces, len(packages))
	}
	open(&primary, "metadata", `xmlns="`+commonSpace+`" xmlns:rpm="`+rpmSpace+`"`)
	open(&filelists, "filelists", `xmlns="`+filelistsSpace+`"`)
	open(&other, "otherdata", `xmlns="`+otherSpace+`"`)
	for _, p := range packages {
		record, files, err := placed(p)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p, err)
		}
		primary.Write(record)
		primary.WriteByte('\n')
		head(&filelists, p)
		for _, f := range files {
			filelists.WriteString("  <file")
			if f.kind != "" {
				filelists.WriteString(` type="` + escape(f.kind) + `"`)
			}
			filelists.WriteString(">" + escape(f.path) + "</file>\n")
		}
		filelists.WriteString("</package>\n")
		head(&other, p)
		other.WriteString("</package>\n")
	}
	primary.WriteString("</metadata>\n")
	filelists.WriteString("</filelists>\n")
	other.WriteString("</otherdata>\n")
	return listed(at, part{"primary", primary.Bytes()}, part{"filelists", filelists.Bytes()}, part{"other", other.Bytes()})
}

const otherSpace = "http://linux.duke.edu/metadata/other"

func escape(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a Builder takes everything
	return b.String()
}

// head opens the element that says which package the rest is of.
func head(b *bytes.Buffer, p *packaging.Package) {
	fmt.Fprintf(b, "<package pkgid=\"%s\" name=\"%s\" arch=\"%s\">\n", p.SHA256+p.SHA512, escape(p.Name), escape(p.Arch))
	epoch, rest, ok := strings.Cut(p.Version, ":")
	if !ok {
		epoch, rest = "0", p.Version
	}
	l := splitRelease(rest)
	fmt.Fprintf(b, "  <version epoch=\"%s\" ver=\"%s\" rel=\"%s\"/>\n", escape(epoch), escape(l.rest), escape(l.release))
}

// placed gives a package's record with its place instead of where it was, and the
// files that are known of it: those of the record, and those that others ask for.
func placed(p *packaging.Package) ([]byte, []owned, error) {
	d := xml.NewDecoder(bytes.NewReader(p.Record))
	if _, err := d.Token(); err != nil {
		return nil, nil, errors.New("it has no record")
	}
	from, to := int64(-1), int64(-1)
	var files []owned
	for at := d.InputOffset(); ; at = d.InputOffset() {
		token, err := d.Token()
		if err != nil {
			return nil, nil, unexpected(err)
		}
		if _, ok := token.(xml.EndElement); ok {
			break
		}
		s, ok := token.(xml.StartElement)
		switch {
		case !ok:
			continue
		case s.Name.Local == "location" && from < 0:
			from = at
		case s.Name.Local == "format":
			e := &entry{}
			if err := e.format(d); err != nil {
				return nil, nil, err
			}
			files = append(files, e.files...)
			continue
		}
		if err := d.Skip(); err != nil {
			return nil, nil, unexpected(err)
		}
		if s.Name.Local == "location" && to < 0 {
			to = d.InputOffset()
		}
	}
	if to < 0 {
		return nil, nil, errors.New("its record has no location")
	}
	for _, r := range p.Provides {
		if strings.HasPrefix(r.Name, "/") && !slices.ContainsFunc(files, func(f owned) bool { return f.path == r.Name }) {
			files = append(files, owned{path: r.Name})
		}
	}
	return slices.Concat(p.Record[:from], []byte(`<location href="`+escape(Place(p))+`"/>`), p.Record[to:]), files, nil
}

// part is one file of metadata before it is compressed.
type part struct {
	kind    string
	content []byte
}

// listed compresses the parts, and adds the repomd.xml that lists them.
func listed(at time.Time, parts ...part) ([]File, error) {
	var out []File
	var index bytes.Buffer
	fmt.Fprintf(&index, "%s<repomd xmlns=\"%s\" xmlns:rpm=\"%s\">\n  <revision>%d</revision>\n", xml.Header, repoSpace, rpmSpace, at.Unix())
	for _, p := range parts {
		var packed bytes.Buffer
		z, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
		if err != nil {
			return nil, err
		}
		if _, err := z.Write(p.content); err != nil {
			return nil, err
		}
		if err := z.Close(); err != nil {
			return nil, err
		}
		sum := sha256.Sum256(packed.Bytes())
		name := fmt.Sprintf("repodata/%x-%s.xml.gz", sum, p.kind)
		out = append(out, File{name, packed.Bytes()})
		fmt.Fprintf(&index, `  <data type="%s">
    <checksum type="sha256">%x</checksum>
    <open-checksum type="sha256">%x</open-checksum>
    <location href="%s"/>
    <timestamp>%d</timestamp>
    <size>%d</size>
    <open-size>%d</open-size>
  </data>
`, p.kind, sum, sha256.Sum256(p.content), name, at.Unix(), packed.Len(), len(p.content))
	}
	index.WriteString("</repomd>\n")
	return append(out, File{"repodata/repomd.xml", index.Bytes()}), nil
}
