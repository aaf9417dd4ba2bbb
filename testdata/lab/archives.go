package lab

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"

	"github.com/mensylisir/kubexm/bundle/chart"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/durable"
	"github.com/mensylisir/kubexm/testdata/lab/components"
)

// packedAt is the time of every file in the lab's archives.
var packedAt = time.Date(2025, time.January, 1, 0, 0, 0, 0, time.UTC)

// published gives the file that upstream publishes at a's address, made of
// what the lab has built; "" where the lab builds nothing of the kind.
func published(cache string, rows []components.Component, a manifest.Artifact) (string, error) {
	c, ok := maker(rows, a.Name)
	if !ok {
		return "", nil
	}
	if strings.TrimPrefix(c.Version, "v") != strings.TrimPrefix(a.Version, "v") {
		return "", fmt.Errorf("%s asks for version %s, and the lab builds %s", a.ID, a.Version, c.Version)
	}
	dir := c.Dir(cache)
	if a.Kind == manifest.Chart {
		return packChart(cache, dir, a)
	}
	if a.Archive == "" {
		for _, name := range []string{a.Name, path.Base(a.Address)} {
			if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
				return filepath.Join(dir, name), nil
			}
		}
		return "", fmt.Errorf("%s: %s has neither %s nor %s", a.ID, dir, a.Name, path.Base(a.Address))
	}
	return pack(cache, dir, c, a)
}

// archiveOf gives where the cache has an archive of what is built in dir, and whether it is there.
func archiveOf(cache, dir string, a manifest.Artifact) (out string, there bool, err error) {
	stamp, err := os.ReadFile(filepath.Join(dir, "stamp"))
	if err != nil {
		return "", false, err
	}
	out = filepath.Join(cache, "archives", string(stamp[:12]), path.Base(a.Address))
	if _, err := os.Stat(out); err == nil {
		return out, true, nil
	}
	return out, false, os.MkdirAll(filepath.Dir(out), 0o755)
}

// packChart makes the archive of a component's chart, unless the cache has it.
func packChart(cache, dir string, a manifest.Artifact) (string, error) {
	out, there, err := archiveOf(cache, dir, a)
	if err != nil || there {
		return out, err
	}
	read, err := chart.ReadDir(filepath.Join(dir, "chart"))
	if err != nil {
		return "", fmt.Errorf("%s: %w", a.ID, err)
	}
	archive, err := read.Pack()
	if err != nil {
		return "", fmt.Errorf("%s: %w", a.ID, err)
	}
	return out, durable.WriteFile(out, archive, 0o644)
}

// maker finds the component that an artifact's name is of: its own, or one of its programs'.
func maker(rows []components.Component, name string) (components.Component, bool) {
	for _, fits := range []func(components.Component) bool{
		func(c components.Component) bool { return c.Name == name },
		func(c components.Component) bool { return c.Programs[name] != "" },
	} {
		if i := slices.IndexFunc(rows, fits); i >= 0 {
			return rows[i], true
		}
	}
	return components.Component{}, false
}

// pack makes the archive that a names, with its members where upstream has
// them, unless the cache has it.
func pack(cache, dir string, c components.Component, a manifest.Artifact) (string, error) {
	out, there, err := archiveOf(cache, dir, a)
	if err != nil || there {
		return out, err
	}
	f, err := os.CreateTemp(filepath.Dir(out), ".part-")
	if err != nil {
		return "", err
	}
	defer os.Remove(f.Name())
	if err := errors.Join(writeArchive(f, dir, c, a), f.Close()); err != nil {
		return "", fmt.Errorf("%s: %w", a.ID, err)
	}
	if err := os.Chmod(f.Name(), 0o644); err != nil {
		return "", err
	}
	return out, os.Rename(f.Name(), out)
}

func writeArchive(w io.Writer, dir string, c components.Component, a manifest.Artifact) error {
	z, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
	if err != nil {
		return err
	}
	t := tar.NewWriter(z)
	// Releases packed with `tar -C bin .` begin every name with "./".
	prefix := ""
	if strings.HasSuffix(a.Address, ".tgz") && !slices.ContainsFunc(a.Members, func(m manifest.Member) bool { return strings.Contains(m.Path, "/") }) {
		prefix = "./"
	}
	note := "Built by the kubexm lab from " + c.Module + " " + c.Version + ".\n"
	top, _, nested := strings.Cut(a.Members[0].Path, "/")
	name := prefix + "BUILT-BY-THE-LAB"
	if nested {
		name = top + "/BUILT-BY-THE-LAB"
	}
	h := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(note)), ModTime: packedAt}
	if err := t.WriteHeader(h); err != nil {
		return err
	}
	if _, err := io.WriteString(t, note); err != nil {
		return err
	}
	for _, m := range a.Members {
		if err := writeMember(t, filepath.Join(dir, m.Name), prefix+m.Path); err != nil {
			return err
		}
	}
	return errors.Join(t.Close(), z.Close())
}

func writeMember(t *tar.Writer, from, name string) error {
	f, err := os.Open(from)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if err := t.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o755, Size: info.Size(), ModTime: packedAt}); err != nil {
		return err
	}
	_, err = io.Copy(t, f)
	return err
}
