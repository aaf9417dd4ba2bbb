package fetch

import (
	"archive/tar"
	"cmp"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
)

// similar lists up to three files of the archive with names similar to a missing name: with
// the same base name, or with a small edit distance.
func (x *extraction) similar(name string) string {
	const most, longest = 3, 200
	type candidate struct {
		name     string
		distance int
	}
	var all []candidate
	for _, n := range slices.Sorted(maps.Keys(x.entries)) {
		e := x.entries[n]
		if len(n) > longest || e.kind == tar.TypeDir { // folders cannot be selected
			continue
		}
		d := levenshtein.ComputeDistance(n, name)
		if path.Base(n) == path.Base(name) {
			d = 0
		}
		all = append(all, candidate{n, d})
	}
	if len(all) == 0 {
		return "; it contains no files"
	}
	slices.SortStableFunc(all, func(a, b candidate) int { return cmp.Compare(a.distance, b.distance) })
	var names []string
	for _, c := range all[:min(len(all), most)] {
		names = append(names, oneLine(c.name))
	}
	return "; similar names are " + strings.Join(names, ", ")
}
