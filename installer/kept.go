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

// keptName is the record of archives among what was applied.
const keptName = "bundles.json"

// Kept is an archive that a run on this machine took something from.
type Kept struct {
	Root  string `json:"root"` // "sha256:…"
	Path  string `json:"path"` // absolute; of the first volume, where it is in volumes
	Bytes int64  `json:"bytes"`
}

// KeptBundles reads which archives runs on a cluster have used, the cluster's
// folder lying below base. Whether they still lie there, and are the same, is for
// the caller to see. No record is no error.
func KeptBundles(base, cluster string) ([]Kept, error) {
	return readKept(Workdir{Dir: filepath.Join(base, ".kubexm", cluster)})
}

func readKept(w Workdir) ([]Kept, error) {
	text, err := os.ReadFile(w.Applied(keptName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("record of bundles: %w", err)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	var all []Kept
	if err := d.Decode(&all); err != nil {
		return nil, fmt.Errorf("record of bundles: %s: %w", w.Applied(keptName), err)
	}
	return all, nil
}

// kept is the record with the archives of this run in it. Those that are gone by
// now are left out. It is the same text each time while nothing changes.
func (s *Session) kept() []byte {
	all, err := readKept(s.Workdir)
	if err != nil {
		s.Log.Warn("the record of bundles is begun anew", "error", err)
		all = nil
	}
	own := map[string]bool{}
	for _, b := range s.Bundle.Archives() {
		path, err := filepath.Abs(b.Path())
		if err != nil {
			path = b.Path()
		}
		own[path] = true
		all = slices.DeleteFunc(all, func(k Kept) bool { return k.Path == path })
		all = append(all, Kept{Root: b.Root.Digest.String(), Path: path, Bytes: b.Size()})
	}
	all = slices.DeleteFunc(all, func(k Kept) bool {
		_, err := os.Stat(k.Path)
		return !own[k.Path] && errors.Is(err, fs.ErrNotExist)
	})
	return encodeKept(all)
}

func encodeKept(all []Kept) []byte {
	slices.SortFunc(all, func(a, b Kept) int { return cmp.Or(cmp.Compare(a.Root, b.Root), cmp.Compare(a.Path, b.Path)) })
	text, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return nil // strings and numbers always encode
	}
	return append(text, '\n')
}

// FindBases gives a delta the archives that earlier runs on the cluster used, as
// far as they still lie there and are its bases.
func FindBases(ctx context.Context, b *bundle.Bundle, base, cluster string) error {
	if n, _ := b.Absent(); n == 0 {
		return nil
	}
	kept, err := KeptBundles(base, cluster)
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
