package manifest

import (
	"fmt"
	"slices"
	"strings"
)

// Unmirrored warns of addresses that are downloaded from upstream although a zone is set. The
// machine that builds the bundle may not reach them, and would only fail at the end.
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
			Message: fmt.Sprintf("%s is downloaded from upstream: %s", from, why),
			Advice:  "if that host cannot be reached, add a mirror of " + from + " to spec.sources.replace",
		})
	}
	return ps
}

// addresses returns the upstream addresses of everything in a lock.
func (l *Lock) addresses() []string {
	var all []string
	for _, a := range l.Artifacts {
		all = append(all, strings.TrimPrefix(a.Address, "oci://"), a.DigestAddress, a.Repository) // a chart in a registry is downloaded like an image
	}
	for _, im := range l.Images {
		all = append(all, im.Reference)
	}
	return all
}
