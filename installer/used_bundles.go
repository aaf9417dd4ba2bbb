package installer

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/mensylisir/kubexm/bundle"
)

// usedName is the file with the list of used bundles, among the documents that were applied.
const usedName = "bundles.json"

// UsedBundle is an archive that an earlier run on this machine read blobs from.
type UsedBundle struct {
	Root  string `json:"root"` // "sha256:…"
	Path  string `json:"path"` // absolute; of the first volume if the bundle is in volumes
	Bytes int64  `json:"bytes"`
}

// UsedBundles returns the archives that runs on a cluster have used; the cluster's folder is
// below base. The caller checks whether they still exist and are unchanged. A missing list is
// not an error.
func UsedBundles(base, cluster string) ([]UsedBundle, error) {
	return readUsed(Workdir{Dir: filepath.Join(base, ".kubexm", cluster)})
}

func readUsed(w Workdir) ([]UsedBundle, error) {
	text, err := os.ReadFile(w.Applied(usedName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list of used bundles: %w", err)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	var all []UsedBundle
	if err := d.Decode(&all); err != nil {
		return nil, fmt.Errorf("list of used bundles: %s: %w", w.Applied(usedName), err)
	}
	return all, nil
}

// usedBundles returns the list of used bundles including the archives of this run. Missing archives
// are left out. The text is the same while nothing changes.
func (s *Session) usedBundles() []byte {
	all, err := readUsed(s.Workdir)
	if err != nil {
		s.Log.Warn("cannot read the list of used bundles; starting a new one", "error", err)
		all = nil
	}
	own := map[string]bool{}
	for _, b := range s.Bundle.Archives() {
		path, err := filepath.Abs(b.Path())
		if err != nil {
			path = b.Path()
		}
		own[path] = true
		all = slices.DeleteFunc(all, func(k UsedBundle) bool { return k.Path == path })
		all = append(all, UsedBundle{Root: b.Root.Digest.String(), Path: path, Bytes: b.Size()})
	}
	all = slices.DeleteFunc(all, func(k UsedBundle) bool {
		_, err := os.Stat(k.Path)
		return !own[k.Path] && errors.Is(err, fs.ErrNotExist)
	})
	return encodeUsed(all)
}

func encodeUsed(all []UsedBundle) []byte {
	slices.SortFunc(all, func(a, b UsedBundle) int { return cmp.Or(cmp.Compare(a.Root, b.Root), cmp.Compare(a.Path, b.Path)) })
	text, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return nil // strings and numbers always encode
	}
	return append(text, '\n')
}

// FindBases provides a delta with the archives that earlier runs on the cluster used, if they
// still exist and are bases of the delta.
func FindBases(ctx context.Context, b *bundle.Bundle, base, cluster string) error {
	if n, _ := b.Absent(); n == 0 {
		return nil
	}
	kept, err := UsedBundles(base, cluster)
	if err != nil {
		return err
	}
	var paths []string
	for _, k := range kept {
		if _, err := os.Stat(k.Path); err == nil {
			paths = append(paths, k.Path)
		}
	}
	return b.FindBases(ctx, bundle.Bases{Known: paths})
}
