package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/mensylisir/kubexm/bundle"
	"github.com/mensylisir/kubexm/manifest"
)

// delta is an archive for a site that has the work set and lacks a few images. Sizes depend
// only on lock and inventory, so that one build is enough.
type delta struct {
	Archive int64 `json:"archiveBytes"`
	Lacking int64 `json:"lackingBytes"` // artifacts beyond those of the first bundle
}

// measureDelta writes the inventory of a site that has the archive, and builds the delta to
// the next config with an empty cache.
func (w *work) measureDelta(ctx context.Context) error {
	site, err := w.inventory(ctx)
	if err != nil {
		return err
	}
	out := filepath.Join(w.dir, "delta", "out")
	if err := os.MkdirAll(out, 0o750); err != nil {
		return err
	}
	before := w.content.bytes()
	_, err = w.measure(ctx, process{args: w.args("delta", w.next, "build", "--locked", "--since", site,
		"--cache-dir", filepath.Join(w.dir, "delta", "cache"), filepath.Join(out, archiveName))})
	if err != nil {
		return err
	}
	w.delta = delta{Lacking: w.content.bytes() - before, Archive: size(out, func(i fs.FileInfo) int64 { return i.Size() })}
	return os.RemoveAll(filepath.Join(w.dir, "delta"))
}

// inventory is what `kubexm site inventory` would write with the archive and no reachable
// host: the bench has no hosts to query.
func (w *work) inventory(ctx context.Context) (path string, err error) {
	b, err := bundle.Open(ctx, w.archive, bundle.Policy{AllowUnsigned: true})
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	held, err := b.Payload()
	if err != nil {
		return "", err
	}
	w.root = b.Root.Digest.String()
	i := manifest.Inventory{
		Cluster:  b.Lock.Cluster,
		Bundles:  []manifest.InventoryBundle{{Root: w.root, File: archiveName, Bytes: b.Size()}},
		Registry: manifest.InventoryRegistry{State: manifest.RegistryAbsent},
		Blobs:    map[string]manifest.BlobLocation{},
	}
	for _, x := range held {
		i.Blobs[x.Digest] = manifest.InBundle
	}
	text, err := manifest.EncodeInventory(&i)
	if err != nil {
		return "", err
	}
	path = filepath.Join(w.dir, "site.json")
	return path, os.WriteFile(path, text, 0o600)
}
