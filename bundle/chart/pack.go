package chart

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"helm.sh/helm/v3/pkg/ignore"
)

// readInner returns the name of the chart in an archive.
func readInner(archive []byte) (string, error) {
	c, err := Read(bytes.NewReader(archive))
	if err != nil {
		return "", err
	}
	return c.Name, nil
}

// ReadDir reads a chart's folder, without the files that its .helmignore matches.
func ReadDir(dir string) (*Chart, error) {
	rules, err := ignored(dir)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }() // opened for reading only
	b := &budget{}
	var files []File
	err = filepath.WalkDir(dir, func(at string, d fs.DirEntry, err error) error {
		if err != nil || at == dir {
			return err
		}
		rel, err := filepath.Rel(dir, at)
		if err != nil {
			return err
		}
		name := filepath.ToSlash(rel)
		info, err := d.Info()
		if err != nil {
			return err
		}
		if rules.Ignore(name, info) {
			if d.IsDir() {
				return filepath.SkipDir
			}
			return nil
		}
		if d.IsDir() {
			return nil
		}
		if !info.Mode().IsRegular() {
			return wrong("%s is a link or a device; replace it by the file itself", at)
		}
		if _, _, err := place("chart/" + name); err != nil {
			return err
		}
		f, err := root.Open(rel)
		if err != nil {
			return err
		}
		read, err := b.read(f, name, info.Size())
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
		files = append(files, read)
		return b.inner(read, 0)
	})
	if err != nil {
		return nil, err
	}
	return newChart(files)
}

// ignored returns the rules of a folder's .helmignore and Helm's default rules.
func ignored(dir string) (*ignore.Rules, error) {
	rules := ignore.Empty()
	file := filepath.Join(dir, ".helmignore")
	if _, err := os.Stat(file); err == nil {
		if rules, err = ignore.ParseFile(file); err != nil {
			return nil, wrong("%s: %v", file, err)
		}
	}
	rules.AddDefaults()
	return rules, nil
}

// With returns c with the archive of another chart in its folder charts.
func (c *Chart) With(archive []byte) (*Chart, error) {
	other, err := Read(bytes.NewReader(archive))
	if err != nil {
		return nil, err
	}
	name := path.Join("charts", other.FileName())
	files := slices.DeleteFunc(slices.Clone(c.Files), func(f File) bool { return f.Name == name })
	return newChart(append(files, File{Name: name, Data: archive}))
}

// FileName is the name of the chart's archive: name-version.tgz.
func (c *Chart) FileName() string { return FileName(c.Name, c.Version) }

// FileName is the name of a chart's archive: name-version.tgz.
func FileName(name, version string) string { return name + "-" + version + ".tgz" }

// Pack returns the archive of c. Equal files give equal bytes: names are sorted, times are
// zero, and nothing is compressed, because another version of a compressor may write
// different bytes.
func (c *Chart) Pack() ([]byte, error) {
	var out bytes.Buffer
	z, err := gzip.NewWriterLevel(&out, gzip.NoCompression)
	if err != nil {
		return nil, err
	}
	t := tar.NewWriter(z)
	for _, f := range c.chartFirst() {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: c.Name + "/" + f.Name, Size: int64(len(f.Data)), Mode: 0o644, ModTime: time.Unix(0, 0), Format: tar.FormatPAX}
		if err := t.WriteHeader(h); err != nil {
			return nil, fmt.Errorf("pack %s: %w", c.Name, err)
		}
		if _, err := t.Write(f.Data); err != nil {
			return nil, fmt.Errorf("pack %s: %w", c.Name, err)
		}
	}
	err = errors.Join(t.Close(), z.Close())
	return out.Bytes(), err
}

// chartFirst returns the files with Chart.yaml first, as Helm writes it and some readers
// require.
func (c *Chart) chartFirst() []File {
	files := slices.Clone(c.Files)
	slices.SortStableFunc(files, func(a, b File) int {
		switch {
		case a.Name == "Chart.yaml":
			return -1
		case b.Name == "Chart.yaml":
			return 1
		}
		return strings.Compare(a.Name, b.Name)
	})
	return files
}
