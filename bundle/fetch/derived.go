package fetch

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/durable"
)

// derivedVersion is the format version of the records.
const derivedVersion = 1

// derived records the selected entries of an archive, so that a cache with these blobs does
// not need the archive again.
type derived struct {
	Version int             `json:"version"`
	Archive string          `json:"archive"` // sha256 of the archive
	Size    int64           `json:"size"`    // size of the archive in bytes
	Members []derivedMember `json:"members"` // sorted by path
}

type derivedMember struct {
	Path   string `json:"path"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

func (c *Cache) derivedPath(archive string) string {
	return filepath.Join(c.dir, "derived", archive+".json")
}

// readDerived returns the record of an archive, empty if there is no usable one.
func (c *Cache) readDerived(archive string) derived {
	f, err := os.Open(c.derivedPath(archive))
	if err != nil {
		return derived{}
	}
	defer func() { _ = f.Close() }() // opened for reading only
	d, err := decodeDerived(io.LimitReader(f, derivedBytes), archive)
	if err != nil {
		return derived{} // ignored: it is rewritten
	}
	return d
}

// derivedBytes is the maximum size of a record.
const derivedBytes = 1 << 20

// decodeDerived strictly decodes the record of an archive.
func decodeDerived(r io.Reader, archive string) (derived, error) {
	var d derived
	b, err := io.ReadAll(r)
	if err != nil {
		return d, err
	}
	j := json.NewDecoder(bytes.NewReader(b))
	j.DisallowUnknownFields()
	if err := j.Decode(&d); err != nil {
		return derived{}, err
	}
	if _, err := j.Token(); !errors.Is(err, io.EOF) {
		return derived{}, errors.New("data follows the record")
	}
	if d.Version != derivedVersion || d.Archive != archive || d.Size < 0 {
		return derived{}, fmt.Errorf("not a record of version %d for %s", derivedVersion, archive)
	}
	for _, m := range d.Members {
		if m.Path == "" || m.Size < 0 || !isHexDigest(m.SHA256) {
			return derived{}, fmt.Errorf("entry %q is incomplete", m.Path)
		}
	}
	return d, nil
}

// pin sets the missing fields of a and its entries. It returns false if d lacks an entry or
// contradicts a.
func (d derived) pin(a manifest.Artifact) (manifest.Artifact, bool) {
	if d.Archive == "" || (a.Size > 0 && a.Size != d.Size) {
		return a, false
	}
	known := map[string]derivedMember{}
	for _, m := range d.Members {
		known[m.Path] = m
	}
	members := slices.Clone(a.Members)
	for i, m := range members {
		k, ok := known[m.Path]
		if !ok || (m.SHA256 != "" && m.SHA256 != k.SHA256) {
			return a, false
		}
		members[i].Size, members[i].SHA256 = k.Size, k.SHA256
	}
	a.Size, a.Members = d.Size, members
	return a, true
}

// addDerived adds a's entries to the record.
func (c *Cache) addDerived(a manifest.Artifact) error {
	d := derived{Version: derivedVersion, Archive: a.SHA256, Size: a.Size, Members: c.readDerived(a.SHA256).Members}
	for _, m := range a.Members {
		d.Members = slices.DeleteFunc(d.Members, func(k derivedMember) bool { return k.Path == m.Path })
		d.Members = append(d.Members, derivedMember{Path: m.Path, Size: m.Size, SHA256: m.SHA256})
	}
	slices.SortFunc(d.Members, func(a, b derivedMember) int { return cmp.Compare(a.Path, b.Path) })
	b, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return err
	}
	return durable.WriteFile(c.derivedPath(a.SHA256), append(b, '\n'), 0o644)
}
