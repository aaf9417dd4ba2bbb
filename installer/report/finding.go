package report

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
)

// FindingRow is one finding with all the hosts that have it.
type FindingRow struct {
	steps.Finding
	Hosts []string
}

// SortedFindings sorts findings: errors first, then by the order of hosts in the config.
func SortedFindings(all []steps.Finding, c *manifest.Cluster) []steps.Finding {
	order := func(host string) int {
		return slices.IndexFunc(c.Spec.Hosts, func(h manifest.Host) bool { return h.Name == host })
	}
	severity := func(f steps.Finding) int {
		return slices.Index([]string{steps.LevelError, steps.LevelWarning, steps.LevelNote}, f.Level())
	}
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b steps.Finding) int {
		return cmp.Or(cmp.Compare(severity(a), severity(b)), cmp.Compare(order(a.Host), order(b.Host)), cmp.Compare(a.Check, b.Check), cmp.Compare(a.What, b.What))
	})
	return all
}

// FindingRows joins findings that are the same on several hosts. The host's name is replaced
// by <host> in the text.
func FindingRows(all []steps.Finding, c *manifest.Cluster) []FindingRow {
	var rows []FindingRow
	at := map[string]int{} // by the text without hosts
	for _, f := range SortedFindings(all, c) {
		plain := Failure{Hosts: []string{f.Host}, Message: f.What, Advice: []string{f.Advice}}.anyHost(c)
		key := func(what, advice string) string { return fmt.Sprintf("%q", []string{f.Level(), f.Check, what, advice}) }
		same, alike := key(f.What, f.Advice), key(plain.Message, plain.Advice[0])
		i, ok := at[same] // the text may contain names of other hosts
		if !ok {
			if i, ok = at[alike]; ok && !slices.Contains(rows[i].Hosts, f.Host) {
				rows[i].What, rows[i].Advice = plain.Message, plain.Advice[0]
			}
		}
		switch {
		case !ok:
			at[same], at[alike] = len(rows), len(rows)
			rows = append(rows, FindingRow{f, []string{f.Host}})
		case !slices.Contains(rows[i].Hosts, f.Host):
			rows[i].Hosts = append(rows[i].Hosts, f.Host)
		}
	}
	return rows
}

// Counts counts findings by their level, and the hosts that have one.
func Counts(all []steps.Finding) (levels map[string]int, hosts int) {
	levels = map[string]int{}
	on := map[string]bool{}
	for _, f := range all {
		levels[f.Level()]++
		if f.Host != "" {
			on[f.Host] = true
		}
	}
	return levels, len(on)
}
