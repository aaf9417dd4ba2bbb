package rpm

import (
	"bytes"
	"crypto/sha256"
	"encoding/xml"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/packaging"
)

// Write returns the metadata of a repository of packages from Metadata.Members. The output
// is reproducible for the same packages and time. dnf and yum require the files primary,
// filelists and other; the latter two contain only what is necessary. The files are not
// compressed, because the output of compressors changes between their releases, and the
// bundle is compressed anyway.
func Write(packages []manifest.Member, at time.Time) ([]packaging.File, error) {
	packages = slices.Clone(packages)
	slices.SortFunc(packages, func(a, b manifest.Member) int { return strings.Compare(a.Package, b.Package) })
	var primary, filelists, other bytes.Buffer
	open := func(b *bytes.Buffer, root, spaces string) {
		fmt.Fprintf(b, "%s<%s %s packages=\"%d\">\n", xml.Header, root, spaces, len(packages))
	}
	open(&primary, "metadata", `xmlns="`+commonSpace+`" xmlns:rpm="`+rpmSpace+`"`)
	open(&filelists, "filelists", `xmlns="`+filelistsSpace+`"`)
	open(&other, "otherdata", `xmlns="`+otherSpace+`"`)
	taken := map[string]bool{}
	for _, m := range packages {
		e, err := recorded(m)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.Package, err)
		}
		if taken[m.Path] || taken[m.Package] {
			return nil, fmt.Errorf("%s is listed twice", m.Package)
		}
		taken[m.Path], taken[m.Package] = true, true
		primary.WriteString(m.Record)
		primary.WriteByte('\n')
		head(&filelists, e)
		for _, f := range e.files {
			filelists.WriteString("  <file")
			if f.kind != "" {
				filelists.WriteString(` type="` + escape(f.kind) + `"`)
			}
			filelists.WriteString(">" + escape(f.path) + "</file>\n")
		}
		filelists.WriteString("</package>\n")
		head(&other, e)
		other.WriteString("</package>\n")
	}
	primary.WriteString("</metadata>\n")
	filelists.WriteString("</filelists>\n")
	other.WriteString("</otherdata>\n")
	return listed(at, part{"primary", primary.Bytes()}, part{"filelists", filelists.Bytes()}, part{"other", other.Bytes()}), nil
}

const otherSpace = "http://linux.duke.edu/metadata/other"

func escape(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a Builder never returns an error
	return b.String()
}

// head writes the start of a package element, with the package's identity.
func head(b *bytes.Buffer, e *entry) {
	fmt.Fprintf(b, "<package pkgid=\"%s\" name=\"%s\" arch=\"%s\">\n", e.SHA256+e.SHA512, escape(e.Name), escape(e.Arch))
	epoch, rest, ok := strings.Cut(e.Version, ":")
	if !ok {
		epoch, rest = "0", e.Version
	}
	l := splitRelease(rest)
	fmt.Fprintf(b, "  <version epoch=\"%s\" ver=\"%s\" rel=\"%s\"/>\n", escape(epoch), escape(l.rest), escape(l.release))
}

// part is one file of metadata.
type part struct {
	kind    string
	content []byte
}

// listed returns the files of the parts, and the repomd.xml that lists them.
func listed(at time.Time, parts ...part) []packaging.File {
	var out []packaging.File
	var index bytes.Buffer
	fmt.Fprintf(&index, "%s<repomd xmlns=\"%s\" xmlns:rpm=\"%s\">\n  <revision>%d</revision>\n", xml.Header, repoSpace, rpmSpace, at.Unix())
	for _, p := range parts {
		name := "repodata/" + p.kind + ".xml"
		out = append(out, packaging.File{Path: name, Content: p.content})
		fmt.Fprintf(&index, `  <data type="%[1]s">
    <checksum type="sha256">%[2]x</checksum>
    <open-checksum type="sha256">%[2]x</open-checksum>
    <location href="%[3]s"/>
    <timestamp>%[4]d</timestamp>
    <size>%[5]d</size>
    <open-size>%[5]d</open-size>
  </data>
`, p.kind, sha256.Sum256(p.content), name, at.Unix(), len(p.content))
	}
	index.WriteString("</repomd>\n")
	return append(out, packaging.File{Path: "repodata/repomd.xml", Content: index.Bytes()})
}
