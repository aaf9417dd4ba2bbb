package rpm

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/packaging"
)

// Universe returns the packages that dnf would choose from. Packages of repositories with
// a lower priority number hide those of the same name in others. Packages of module
// streams are skipped, since each host enables its own streams. The notes report what was
// skipped.
func (m *Metadata) Universe() (u *packaging.Universe, notes []string, err error) {
	ranked := make([]int, len(m.repositories))
	for i := range ranked {
		ranked[i] = i
	}
	slices.SortStableFunc(ranked, func(a, b int) int {
		return cmp.Compare(m.repositories[a].Priority, m.repositories[b].Priority)
	})
	priority := map[string]int{} // of the packages of a name
	passed := map[string]int{}
	var all []*packaging.Package
	there := map[string]bool{}
	for _, i := range ranked {
		r := m.repositories[i]
		for _, e := range m.entries[i] {
			if module, ok := m.modules[e.artifact()]; ok && !r.ModuleHotfixes {
				passed[module]++
				continue
			}
			if p, ok := priority[e.Name]; ok && p < r.Priority {
				continue
			}
			priority[e.Name] = r.Priority
			if !there[e.artifact()] { // of equal packages, the one of the first repository
				there[e.artifact()] = true
				all = append(all, &e.Package)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b *packaging.Package) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), Compare(b.Version, a.Version))
	})
	if err := markBase(all); err != nil {
		return nil, nil, err
	}
	latest := map[string]string{}
	for _, p := range slices.Backward(all) {
		latest[p.Name] = p.Version
	}
	return packaging.Family{Compare: Compare, Meets: meets, Order: order(latest), DropRedundant: true}.Universe(all), passedOver(passed), nil
}

// passedOver returns a note about the modules whose packages were skipped.
func passedOver(passed map[string]int) []string {
	if len(passed) == 0 {
		return nil
	}
	n := 0
	for _, x := range passed {
		n += x
	}
	return []string{fmt.Sprintf("%d packages of module streams are skipped: %s", n, strings.Join(slices.Sorted(maps.Keys(passed)), ", "))}
}

// Want converts names to requirements, like dnf: a package's name or, if no package has
// that name, a provided name or a path. A package that obsoletes one of that name is an
// alternative.
func (m *Metadata) Want(names ...string) []packaging.Requirement {
	var out []packaging.Requirement
	for _, name := range names {
		var named []*entry
		m.each(func(e *entry) {
			if e.Name == name {
				named = append(named, e)
			}
		})
		q := packaging.Requirement{Any: []packaging.Relation{{Name: name, Own: len(named) > 0}}}
		m.each(func(e *entry) {
			if slices.ContainsFunc(named, func(n *entry) bool { return replaces(&e.Package, &n.Package) }) {
				q.Any = append(q.Any, packaging.Relation{Name: e.Name, Operator: packaging.Exactly, Version: e.Version, Own: true})
			}
		})
		out = append(out, q)
	}
	return out
}

func (m *Metadata) each(f func(*entry)) {
	for _, entries := range m.entries {
		for _, e := range entries {
			f(e)
		}
	}
}
