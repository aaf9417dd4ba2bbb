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

// near names up to three files of the archive that may be meant by a name which
// is not in it: of the same base name, or spelt alike.
func (x *extraction) near(name string) string {
	const most, longest = 3, 200
	type candidate struct {
		name     string
		distance int
	}
	var all []candidate
	for _, n := range slices.Sorted(maps.Keys(x.entries)) {
		e := x.entries[n]
		if len(n) > longest || e.kind == tar.TypeDir { // a folder is never meant
			continue
		}
		d := levenshtein.ComputeDistance(n, name)
		if path.Base(n) == path.Base(name) {
			d = 0
		}
		all = append(all, candidate{n, d})
	}
	if len(all) == 0 {
		return "; it holds no files"
	}
	slices.SortStableFunc(all, func(a, b candidate) int { return cmp.Compare(a.distance, b.distance) })
	var names []string
	for _, c := range all[:min(len(all), most)] {
		names = append(names, oneLine(c.name))
	}
	return "; near are " + strings.Join(names, ", ")
}
