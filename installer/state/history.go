package state

import (
	"slices"

	"github.com/mensylisir/kubexm/steps/cluster"
)

// merged joins what a cluster remembers with what this machine does, by the time of the
// ends; a line of both is in it once.
func merged(there, here []cluster.Ended) []cluster.Ended {
	all := slices.Clone(there)
	for _, e := range here {
		if !slices.ContainsFunc(there, func(x cluster.Ended) bool { return x.ID == e.ID && x.Outcome == e.Outcome && x.End.Equal(e.End) }) {
			all = append(all, e)
		}
	}
	slices.SortStableFunc(all, func(x, y cluster.Ended) int { return x.End.Compare(y.End) })
	return all
}
