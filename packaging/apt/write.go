package apt

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/packaging"
)

// About is what a written repository says of itself.
type About struct {
	Origin, Label, Suite, Codename string // empty ones are left out
	Arch                           string // in dpkg's words
	Date                           time.Time
}

// Write gives the metadata of a flat repository of packages, as Archive.Members
// gives them: apt uses it as "deb ADDRESS ./". It bears no signature. Nothing of it
// is compressed: a compressor's next release would make other bytes of it, and what
// carries the repository compresses anyway. Equal input gives equal bytes.
func Write(packages []manifest.Member, about About) ([]packaging.File, error) {
	if about.Date.IsZero() {
		return nil, errors.New("a repository needs a date")
	}
	all := make([]stanzaOut, len(packages))
	taken := map[string]bool{}
	for i, m := range packages {
		var err error
		if all[i], err = placed(m); err != nil {
			return nil, fmt.Errorf("%s: %w", m.Package, err)
		}
		if taken[m.Path] || taken[m.Package] {
			return nil, fmt.Errorf("%s is there twice", m.Package)
		}
		taken[m.Path], taken[m.Package] = true, true
	}
	slices.SortFunc(all, func(a, b stanzaOut) int {
		return cmp.Or(strings.Compare(a.name, b.name), Compare(a.version, b.version), strings.Compare(a.arch, b.arch))
	})
	var index bytes.Buffer
	for i, x := range all {
		if i > 0 {
			index.WriteByte('\n')
		}
		index.Write(x.text)
	}
	files := []packaging.File{{Path: "Packages", Content: index.Bytes()}}
	return append(files, packaging.File{Path: "Release", Content: about.release(files)}), nil
}

// stanzaOut is a paragraph of Packages.
type stanzaOut struct {
	name, version, arch string
	text                []byte
}

// own are the fields that follow from where a package lies and what its bytes are.
var own = []string{"filename", "size", "sha256"}

// placed makes a paragraph of a package's record, after a look whether it is the
// record of this package and nothing else: it comes from a lock, which anybody may
// have written.
func placed(m manifest.Member) (stanzaOut, error) {
	var out bytes.Buffer
	have := map[string]string{}
	err := eachField([]byte(m.Record), func(f field) error {
		name := strings.ToLower(string(f.name))
		if _, twice := have[name]; twice || slices.Contains(own, name) {
			return fmt.Errorf("its record has one %s too many", f.name)
		}
		have[name] = string(f.value)
		return writeField(&out, f)
	})
	if err != nil {
		return stanzaOut{}, err
	}
	x := stanzaOut{name: have["package"], version: have["version"], arch: have["architecture"]}
	if p := (&packaging.Package{Name: x.name, Version: x.version, Arch: x.arch}).String(); p != m.Package {
		return x, fmt.Errorf("its record is of %s", p)
	}
	fmt.Fprintf(&out, "Filename: %s\nSize: %d\nSHA256: %s\n", m.Path, m.Size, m.SHA256)
	x.text = out.Bytes()
	return x, nil
}

// writeField writes one field as control files have it.
func writeField(out *bytes.Buffer, f field) error {
	lines := bytes.Split(f.value, []byte("\n"))
	out.Write(f.name)
	out.WriteByte(':')
	for i, line := range lines {
		line = bytes.TrimRight(line, " \t")
		if i > 0 && len(line) == 0 || bytes.ContainsFunc(line, breaksLine) {
			return fmt.Errorf("its record has a %s that is no field of one paragraph", f.name)
		}
		if i == 0 && len(line) > 0 {
			out.WriteByte(' ')
		}
		out.Write(line)
		out.WriteByte('\n')
	}
	return nil
}

// breaksLine tells the characters that end a line for some readers.
func breaksLine(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }

// release writes the Release of some files.
func (a About) release(files []packaging.File) []byte {
	var b bytes.Buffer
	for _, x := range []struct{ name, value string }{
		{"Origin", a.Origin}, {"Label", a.Label}, {"Suite", a.Suite}, {"Codename", a.Codename},
		{"Date", a.Date.UTC().Format("Mon, 02 Jan 2006 15:04:05 MST")},
		{"Architectures", strings.TrimSpace(a.Arch + " all")},
	} {
		if x.value != "" {
			b.WriteString(x.name + ": " + x.value + "\n")
		}
	}
	b.WriteString("SHA256:\n")
	for _, f := range files {
		fmt.Fprintf(&b, " %x %d %s\n", sha256.Sum256(f.Content), len(f.Content), f.Path)
	}
	return b.Bytes()
}
