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
