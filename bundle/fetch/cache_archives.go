package fetch

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mensylisir/kubexm/manifest/durable"
)

// Archive is a bundle that an earlier command wrote. Later builds read blobs from it instead
// of downloading them. The cache knows where it is and does not own it.
type Archive struct {
	Path     string    `json:"path"` // absolute; of the first volume, if the bundle is in volumes
	Root     string    `json:"root"` // digest of the bundle's root
	Size     int64     `json:"size"` // of the file at Path, in bytes
	Modified time.Time `json:"modified"`
	// Compressor identifies the program that compressed its blobs.
	Compressor string `json:"compressor"`

	record string
}

// Remember records the bundle at a.Path, with its size and time.
func (c *Cache) Remember(a Archive) (err error) {
	if a.Path, err = filepath.Abs(a.Path); err != nil {
		return err
	}
	info, err := os.Stat(a.Path)
	if err != nil {
		return err
	}
	a.Size, a.Modified = info.Size(), info.ModTime().UTC()
	b, err := json.Marshal(a)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(c.archives(), 0o755); err != nil {
		return err
	}
	return durable.WriteFile(filepath.Join(c.archives(), hexOf(a.Path)+".json"), append(b, '\n'), 0o644)
}

func (c *Cache) archives() string { return filepath.Join(c.dir, "archives") }

// archiveBytes is the maximum size of a record.
const archiveBytes = 64 << 10

// Archives lists the remembered bundles that are still at their places unchanged, the newest
// first.
func (c *Cache) Archives() ([]Archive, error) {
	all, err := c.remembered()
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(a Archive) bool { return !a.there() })
	slices.SortFunc(all, func(a, b Archive) int { return cmp.Or(b.Modified.Compare(a.Modified), cmp.Compare(a.Path, b.Path)) })
	return all, nil
}

// there reports whether the file is as it was when it was remembered.
func (a *Archive) there() bool {
	info, err := os.Stat(a.Path)
	return err == nil && info.Mode().IsRegular() && info.Size() == a.Size && info.ModTime().Equal(a.Modified)
}

// remembered reads all records; what is not one is passed over.
func (c *Cache) remembered() ([]Archive, error) {
	entries, err := os.ReadDir(c.archives())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list remembered bundles: %w", err)
	}
	var all []Archive
	for _, e := range entries {
		name := filepath.Join(c.archives(), e.Name())
		if info, err := e.Info(); err != nil || !info.Mode().IsRegular() || info.Size() > archiveBytes || !strings.HasSuffix(name, ".json") {
			continue
		}
		b, err := os.ReadFile(name)
		a := Archive{record: name}
		if err != nil || json.Unmarshal(b, &a) != nil || !filepath.IsAbs(a.Path) {
			continue
		}
		all = append(all, a)
	}
	return all, nil
}

// forget removes the records of bundles that are gone or have changed. It does not touch
// bundles.
func (c *Cache) forget() error {
	all, err := c.remembered()
	if err != nil {
		return err
	}
	for _, a := range all {
		if a.there() {
			continue
		}
		if err := os.Remove(a.record); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
