package manifest

import (
	"fmt"
	"slices"
	"strings"
)

// Unmirrored warns of what is fetched from upstream itself although a zone is set: the
// building machine may not reach it, and finds that out after everything else.
func (s Sources) Unmirrored(l *Lock) Problems {
	var ps Problems
	for _, address := range l.addresses() {
		from, why := s.Direct(address)
		same := func(p Problem) bool { return strings.HasPrefix(p.Message, from+" ") }
		if from == "" || slices.ContainsFunc(ps, same) {
			continue
		}
		ps = append(ps, Problem{
			Severity: Warning, Path: "spec.sources.zone",
			Message: fmt.Sprintf("%s is fetched directly: %s", from, why),
			Advice:  "where that host cannot be reached, name a mirror of " + from + " in spec.sources.replace",
		})
	}
	return ps
}

// addresses gives where everything in a lock is fetched from, mirrors aside.
func (l *Lock) addresses() []string {
	var all []string
	for _, a := range l.Artifacts {
		all = append(all, strings.TrimPrefix(a.Address, "oci://"), a.DigestAddress, a.Repository) // a chart of a registry is asked for as an image
	}
	for _, im := range l.Images {
		all = append(all, im.Reference)
	}
	return all
}
