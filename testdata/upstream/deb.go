package upstream

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Deb is a package for dpkg. Its bytes follow from it alone.
type Deb struct {
	Name, Version string
	Arch          string            // "amd64", "all"; empty: all
	Fields        []string          // further lines of its control file: "Depends: libc6"
	Files         map[string]string // what it installs, by path from the root: "usr/bin/socat"
}

// File is its name in a pool, without the version's epoch, as distributions have it.
func (d Deb) File() string {
	version := d.Version[strings.Index(d.Version, ":")+1:]
	return fmt.Sprintf("%s_%s_%s.deb", d.Name, version, d.arch())
}

func (d Deb) arch() string {
	if d.Arch == "" {
		return "all"
	}
	return d.Arch
}

// control is its control file.
func (d Deb) control() string {
	lines := []string{"Package: " + d.Name, "Version: " + d.Version, "Architecture: " + d.arch(), "Maintainer: nobody <nobody@example.com>"}
	lines = append(append(lines, d.Fields...), "Description: made by a test, it does nothing", "")
	return strings.Join(lines, "\n")
}

// Bytes is the package's file.
func (d Deb) Bytes() ([]byte, error) {
	control, err := d.tape(map[string]string{"control": d.control()})
	if err != nil {
		return nil, err
	}
	data, err := d.tape(d.Files)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.WriteString("!<arch>\n")
	for _, m := range []struct {
		name string
		body []byte
	}{{"debian-binary", []byte("2.0\n")}, {"control.tar.gz", control}, {"data.tar.gz", data}} {
		fmt.Fprintf(&b, "%-16s%-12d%-6d%-6d%-8s%-10d`\n", m.name, released.Unix(), 0, 0, "100644", len(m.body))
		b.Write(m.body)
		if len(m.body)%2 == 1 {
			b.WriteByte('\n')
		}
	}
	return b.Bytes(), nil
}

// tape packs files, and the folders that they are in.
func (d Deb) tape(files map[string]string) ([]byte, error) {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.NoCompression) // the same bytes with every release of Go
	if err != nil {
		return nil, err
	}
	t := tar.NewWriter(z)
	put := func(h tar.Header, body string) error {
		h.Size, h.ModTime, h.Format = int64(len(body)), released, tar.FormatGNU
		if err := t.WriteHeader(&h); err != nil {
			return err
		}
		_, err := t.Write([]byte(body))
		return err
	}
	made := map[string]bool{}
	folders := func(name string) error {
		for i, r := range name {
			if dir := "./" + name[:i+1]; r == '/' && !made[dir] {
				made[dir] = true
				if err := put(tar.Header{Typeflag: tar.TypeDir, Name: dir, Mode: 0o755}, ""); err != nil {
					return err
				}
			}
		}
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := folders(name); err != nil {
			return nil, err
		}
		mode := int64(0o644)
		if strings.HasPrefix(files[name], "#!") {
			mode = 0o755
		}
		if err := put(tar.Header{Typeflag: tar.TypeReg, Name: "./" + name, Mode: mode}, files[name]); err != nil {
			return nil, err
		}
	}
	if err := t.Close(); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// stanza is what an index says of it.
func (d Deb) stanza(at string, content []byte) string {
	return fmt.Sprintf("%sFilename: %s\nSize: %d\nSHA256: %x\n", d.control(), at, len(content), sha256.Sum256(content))
}

// Suite is what a repository for apt says of itself.
type Suite struct {
	Codename   string // "bookworm"
	Version    string // of the distribution: "12"
	Date       time.Time
	ValidUntil time.Time // zero: for ever
}
