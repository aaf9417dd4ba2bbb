package chart

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Limits of a chart, including the charts in it. maxFile and maxBytes are Helm's own: helm
// would reject a larger chart at the site.
const (
	maxPacked = 64 << 20  // bytes of an archive
	maxFile   = 5 << 20   // bytes of one file
	maxBytes  = 100 << 20 // bytes of all files
	maxFiles  = 20000
	maxNested = 6 // depth of charts in charts
	maxName   = 1024
)

// File is one file of a chart; its name is relative to the chart's folder.
type File struct {
	Name string
	Data []byte
}

// Chart has the files of a chart, sorted by name, and its metadata from Chart.yaml.
type Chart struct {
	Files []File
	Meta
}

// FormatError reports why something is not a valid chart.
type FormatError struct{ What string }

func (e *FormatError) Error() string { return "not a chart: " + e.What }

func wrong(format string, args ...any) error { return &FormatError{fmt.Sprintf(format, args...)} }

// Read reads a chart's archive (.tgz) and checks the archives in it.
func Read(r io.Reader) (*Chart, error) { return read(r, &budget{}) }

func read(r io.Reader, b *budget) (*Chart, error) {
	files, err := b.unpack(r, 0)
	if err != nil {
		return nil, err
	}
	return newChart(files)
}

// newChart returns a chart of files whose names were checked.
func newChart(files []File) (*Chart, error) {
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	c := &Chart{Files: files}
	var err error
	c.Meta, err = readMeta(c)
	return c, err
}

// file returns the content of a file, nil if it does not exist.
func (c *Chart) file(name string) []byte {
	i, ok := slices.BinarySearchFunc(c.Files, name, func(f File, n string) int { return strings.Compare(f.Name, n) })
	if !ok {
		return nil
	}
	return c.Files[i].Data
}

// budget counts the files and bytes of one chart and of the charts in it.
type budget struct {
	files int
	bytes int64
	most  int64 // limit of bytes; 0 is maxBytes
}

func (b *budget) add(name string, n int64) error {
	b.files++
	b.bytes += n
	switch {
	case n > maxFile:
		return wrong("%s has more than %d bytes", name, maxFile)
	case b.files > maxFiles:
		return wrong("more than %d files", maxFiles)
	case b.bytes > cmp.Or(b.most, maxBytes):
		return wrong("more than %d bytes, unpacked", cmp.Or(b.most, maxBytes))
	}
	return nil
}

// unpack reads an archive that is nested depth charts deep.
func (b *budget) unpack(r io.Reader, depth int) ([]File, error) {
	if depth > maxNested {
		return nil, wrong("charts are nested more than %d deep", maxNested)
	}
	packed := &io.LimitedReader{R: r, N: maxPacked + 1}
	z, err := gzip.NewReader(packed)
	if err != nil {
		return nil, wrong("not gzip: %v", err)
	}
	// Limit headers too: they alone can fill the memory.
	t := tar.NewReader(io.LimitReader(z, maxBytes+maxFiles*1024))
	var files []File
	seen := map[string]bool{}
	top := ""
	for {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, wrong("not tar: %v", err)
		}
		if h.Typeflag == tar.TypeXGlobalHeader || h.Typeflag == tar.TypeDir {
			if err := b.add(h.Name, 0); err != nil {
				return nil, err
			}
			continue
		}
		if h.Typeflag != tar.TypeReg {
			return nil, wrong("%q is a link or a device", cut(h.Name))
		}
		folder, name, err := place(h.Name)
		if err != nil {
			return nil, err
		}
		switch {
		case top != "" && folder != top:
			return nil, wrong("more than one top folder: %q and %q", cut(top), cut(folder))
		case seen[name]:
			return nil, wrong("duplicate entry %q", cut(name))
		}
		top, seen[name] = folder, true
		f, err := b.read(t, name, h.Size)
		if err != nil {
			return nil, err
		}
		if err := b.inner(f, depth); err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	if packed.N <= 0 {
		return nil, wrong("the archive has more than %d bytes", maxPacked)
	}
	return files, nil
}

func (b *budget) read(r io.Reader, name string, size int64) (File, error) {
	if err := b.add(name, size); err != nil {
		return File{}, err
	}
	data, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err != nil {
		return File{}, wrong("%s: %v", name, err)
	}
	if int64(len(data)) != size {
		return File{}, wrong("%s is truncated", name)
	}
	// Drop a byte order mark, as Helm does, so that a file is the same for both.
	return File{Name: name, Data: bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))}, nil
}

// inner checks an archive that Helm's loader would unpack without our limits.
func (b *budget) inner(f File, depth int) error {
	dir, base := path.Split(f.Name)
	if path.Ext(base) != ".tgz" || path.Base(dir) != "charts" {
		return nil
	}
	if _, err := b.unpack(bytes.NewReader(f.Data), depth+1); err != nil {
		return fmt.Errorf("%s: %w", f.Name, err)
	}
	return nil
}

var drive = regexp.MustCompile(`^[a-zA-Z]:`)

// place splits an entry's name into the chart's folder and the name in it.
func place(member string) (folder, name string, err error) {
	folder, name, ok := strings.Cut(strings.TrimPrefix(member, "./"), "/")
	switch {
	case len(member) > maxName || !utf8.ValidString(member) || strings.ContainsAny(member, "\\\x00"):
		return "", "", wrong("invalid name %q", cut(member))
	case !ok || folder == "" || folder == "." || folder == "..":
		return "", "", wrong("%q is not in a folder", cut(member))
	case name != path.Clean(name) || name == "." || name == ".." || strings.HasPrefix(name, "../") || strings.HasPrefix(name, "/"):
		return "", "", wrong("%q points outside the chart", cut(member))
	case drive.MatchString(member) || drive.MatchString(name):
		return "", "", wrong("%q points outside the chart", cut(member))
	}
	return folder, name, nil
}

// cut shortens an untrusted name for an error.
func cut(s string) string { return s[:min(len(s), 80)] }
