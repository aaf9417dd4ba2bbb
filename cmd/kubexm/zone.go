package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/refusal"
)

// zoneVariable is the environment variable that sets the zone of a build if neither the
// config nor --sources does. So one config can be built in different zones.
const zoneVariable = "KMZONE"

// zone sets s.Zone from the environment if it is empty.
func (a *app) zone(s *manifest.Sources) error {
	zone, _ := a.env(zoneVariable)
	if zone == "" || s.Zone != "" {
		return nil
	}
	if zones := manifest.Zones(); !slices.Contains(zones, zone) {
		return &refusal.Error{Err: fmt.Errorf("%s=%s is not a valid zone", zoneVariable, zone), Kind: refusal.Usage, Advice: "use one of " + strings.Join(zones, ", ") + ", or unset it"}
	}
	s.Zone = zone
	return nil
}
