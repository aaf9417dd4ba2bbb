package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/refusal"
)

// zoneVariable names a zone for whoever builds, where neither config nor --sources
// does: the config stays the same in every place.
const zoneVariable = "KMZONE"

func (a *app) zone(s *manifest.Sources) error {
	zone, _ := a.env(zoneVariable)
	if zone == "" || s.Zone != "" {
		return nil
	}
	if zones := manifest.Zones(); !slices.Contains(zones, zone) {
		return &refusal.Error{Err: fmt.Errorf("%s=%s is no zone", zoneVariable, zone), Kind: refusal.Usage, Advice: "use one of " + strings.Join(zones, ", ") + ", or unset it"}
	}
	s.Zone = zone
	return nil
}

// direct warns of what is fetched from upstream itself although a zone is set: the
// building machine may not reach it, and finds that out after everything else.
func direct(s manifest.Sources, l *manifest.Lock) manifest.Problems {
	var ps manifest.Problems
	for _, address := range addressesOf(l) {
		from, why := s.Direct(address)
		same := func(p manifest.Problem) bool { return strings.HasPrefix(p.Message, from+" ") }
		if from == "" || slices.ContainsFunc(ps, same) {
			continue
		}
		ps = append(ps, manifest.Problem{
			Severity: manifest.Warning, Path: "spec.sources.zone",
			Message: fmt.Sprintf("%s is fetched directly: %s", from, why),
			Advice:  "where that host cannot be reached, name a mirror of " + from + " in spec.sources.replace",
		})
	}
	return ps
}

// addressesOf gives where everything in a lock is fetched from, mirrors aside.
func addressesOf(l *manifest.Lock) []string {
	var all []string
	for _, a := range l.Artifacts {
		all = append(all, strings.TrimPrefix(a.Address, "oci://"), a.DigestAddress, a.Repository) // a chart of a registry is asked for as an image
	}
	for _, im := range l.Images {
		all = append(all, im.Reference)
	}
	return all
}
