package apt

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"

	"github.com/mensylisir/kubexm/packaging"
)

// About is what a written repository says of itself.
type About struct {
	Origin, Label, Suite, Codename string // empty ones are left out
	Arch                           string
	Date                           time.Time // when it was made; part of its bytes
}

// File is a file of a repository.
type File struct {
	Path    string // relative to the repository, with slashes
	Content []byte
}

// Placed says where a package's file has to lie.
type Placed struct {
	*packaging.Package
	Path string // relative to the repository, with slashes
}

// Offline is a flat repository of some packages: apt uses it as
// "deb ADDRESS ./". It bears no signature yet.
type Offline struct {
	Metadata []File // Packages, Packages.gz, Release; sorted by path
	Packages []Placed
}

// Write makes a repository of packages, of each of which the Record is needed:
// see Archive.Fill. Equal input gives equal bytes.
func Write(packages []*packaging.Package, about About) (*Offline, error) {
	if about.Date.IsZero() {
		return nil, errors.New("a repository needs a date")
	}
	sorted := slices.Clone(packages)
	slices.SortFunc(sorted, func(a, b *packaging.Package) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), Compare(a.Version, b.Version), strings.Compare(a.Arch, b.Arch))
	})
	o := &Offline{}
	var index bytes.Buffer
	taken := map[string]*packaging.Package{}
	for _, p := range sorted {
		at := path.Join("pool", path.Base(p.Location))
		if other := taken[at]; other != nil {
			if other.String() == p.String() {
				return nil, fmt.Errorf("%s is there twice", p)
			}
			// The epoch is not part of a file's name.
			at = path.Join("pool", p.SHA256, path.Base(p.Location))
		}
		taken[at] = p
		if index.Len() > 0 {
			index.WriteByte('\n')
		}
		if err := relocated(&index, p, at); err != nil {
			return nil, fmt.Errorf("%s: %w", p, err)
		}
		o.Packages = append(o.Packages, Placed{p, at})
	}
	packed, err := pack(index.Bytes())
	if err != nil {
		return nil, err
	}
	o.Metadata = []File{{"Packages", index.Bytes()}, {"Packages.gz", packed}}
	o.Metadata = append(o.Metadata, File{"Release", about.release(o.Metadata)})
	return o, nil
}

// relocated writes a package's record with another path to its file, after a
// look whether it is the record of this package.
func relocated(out *bytes.Buffer, p *packaging.Package, at string) error {
	if len(p.Record) == 0 {
		return errors.New("it has no record")
	}
	have := map[string]string{}
	err := eachField(p.Record, func(f field) error {
		if _, twice := have[string(f.name)]; twice {
			return fmt.Errorf("its record has %s twice", f.name)
		}
		have[string(f.name)] = string(f.value)
		if string(f.name) == "Filename" {
			out.WriteString("Filename: " + at + "\n")
			return nil
		}
		blank := " "
		if len(f.value) == 0 || f.value[0] == '\n' {
			blank = ""
		}
		out.WriteString(string(f.name) + ":" + blank)
		out.Write(f.value)
		out.WriteByte('\n')
		return nil
	})
	if err != nil {
		return err
	}
	for _, x := range []struct{ name, want string }{
		{"Package", p.Name}, {"Version", p.Version}, {"Architecture", p.Arch}, {"Filename", p.Location},
		{"Size", fmt.Sprint(p.Size)}, {"SHA256", p.SHA256},
	} {
		if !strings.EqualFold(have[x.name], x.want) {
			return fmt.Errorf("its record says %s %q, and it has %q", x.name, have[x.name], x.want)
		}
	}
	return nil
}

func pack(text []byte) ([]byte, error) {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(text); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// release writes the Release of some files.
func (a About) release(files []File) []byte {
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
