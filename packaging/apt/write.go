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

// About contains the fields of the Release file of a new repository.
type About struct {
	Origin, Label, Suite, Codename string // empty ones are left out
	Arch                           string // dpkg's name
	Date                           time.Time
}

// Write returns the metadata of a flat repository of packages from Archive.Members; apt
// uses it as "deb URI ./". It is not signed. It is not compressed, because the output of
// compressors changes between their releases, and the bundle is compressed anyway. The
// output is reproducible.
func Write(packages []manifest.Member, about About) ([]packaging.File, error) {
	if about.Date.IsZero() {
		return nil, errors.New("a repository requires a date")
	}
	all := make([]stanzaOut, len(packages))
	taken := map[string]bool{}
	for i, m := range packages {
		var err error
		if all[i], err = placed(m); err != nil {
			return nil, fmt.Errorf("%s: %w", m.Package, err)
		}
		if taken[m.Path] || taken[m.Package] {
			return nil, fmt.Errorf("%s is listed twice", m.Package)
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

// own are the fields that depend on the path and the content of a package file.
var own = []string{"filename", "size", "sha256"}

// placed creates a paragraph from a package's record. It verifies that the record is one
// record of this package, because it comes from a lock file, which is untrusted input.
func placed(m manifest.Member) (stanzaOut, error) {
	var out bytes.Buffer
	have := map[string]string{}
	err := eachField([]byte(m.Record), func(f field) error {
		name := strings.ToLower(string(f.name))
		if _, twice := have[name]; twice || slices.Contains(own, name) {
			return fmt.Errorf("its record has more than one %s", f.name)
		}
		have[name] = string(f.value)
		return writeField(&out, f)
	})
	if err != nil {
		return stanzaOut{}, err
	}
	x := stanzaOut{name: have["package"], version: have["version"], arch: have["architecture"]}
	if p := (&packaging.Package{Name: x.name, Version: x.version, Arch: x.arch}).String(); p != m.Package {
		return x, fmt.Errorf("its record is for %s", p)
	}
	fmt.Fprintf(&out, "Filename: %s\nSize: %d\nSHA256: %s\n", m.Path, m.Size, m.SHA256)
	x.text = out.Bytes()
	return x, nil
}

// writeField writes one field in the format of control files.
func writeField(out *bytes.Buffer, f field) error {
	lines := bytes.Split(f.value, []byte("\n"))
	out.Write(f.name)
	out.WriteByte(':')
	for i, line := range lines {
		line = bytes.TrimRight(line, " \t")
		if i > 0 && len(line) == 0 || bytes.ContainsFunc(line, breaksLine) {
			return fmt.Errorf("the %s in its record spans more than one field", f.name)
		}
		if i == 0 && len(line) > 0 {
			out.WriteByte(' ')
		}
		out.Write(line)
		out.WriteByte('\n')
	}
	return nil
}

// breaksLine reports whether some readers treat a character as the end of a line.
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
