package state

import (
	"slices"

	"github.com/mensylisir/kubexm/steps/cluster"
)

// merged joins the history in the cluster with the history on this machine, by end time. An
// entry in both is included once.
func merged(there, here []cluster.HistoryEntry) []cluster.HistoryEntry {
	all := slices.Clone(there)
	for _, e := range here {
		if !slices.ContainsFunc(there, func(x cluster.HistoryEntry) bool { return x.ID == e.ID && x.Outcome == e.Outcome && x.End.Equal(e.End) }) {
			all = append(all, e)
		}
	}
	slices.SortStableFunc(all, func(x, y cluster.HistoryEntry) int { return x.End.Compare(y.End) })
	return all
}
