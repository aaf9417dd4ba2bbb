package state

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
)

// CheckAway checks whether an installation of c may continue without some hosts. e is the
// cluster record, nil if there is none. An *UnknownHostError reports a name that is not a host
// of c, a *SkipError a host that is required.
func CheckAway(c *manifest.Cluster, e *manifest.Existing, away []string) error {
	if len(away) == 0 {
		return nil
	}
	var known []string
	for _, h := range c.Spec.Hosts {
		known = append(known, h.Name)
	}
	for _, name := range away {
		if !slices.Contains(known, name) {
			return &UnknownHostError{Name: name, Known: known}
		}
	}
	if e == nil {
		return &SkipError{Why: "the installation of the cluster is not finished and requires every host of its config", advice: "bring the host back, or remove it from the config"}
	}
	gone := func(hosts []manifest.Host) (out []string) {
		for _, h := range hosts {
			if slices.Contains(away, h.Name) {
				out = append(out, h.Name)
			}
		}
		return out
	}
	if names := gone(part.RegistryOf(c).Hosts); len(names) > 0 {
		return &SkipError{Why: fmt.Sprintf("host %s runs the registry that all other hosts pull from", names[0]), advice: "bring the host back"}
	}
	masters, store := c.HostsWith(manifest.RoleMaster), part.StoreOf(c)
	if names := gone(masters); len(names) > 0 && len(names) == len(masters) {
		return &SkipError{Why: "no master would be left to reach the API through", advice: "bring a master back: " + strings.Join(names, ", ")}
	}
	if names := gone(store.Members); len(names) > 0 && 2*len(names) >= len(store.Members) {
		return &SkipError{Why: fmt.Sprintf("without %s etcd has no quorum, and no API server can serve requests", strings.Join(names, ", ")), advice: "bring one of them back"}
	}
	return nil
}

// Undone returns what an installation of c does not do on a skipped host; e is the record
// before the installation.
func Undone(c *manifest.Cluster, e *manifest.Existing, host string) []string {
	roles := c.RolesOf(host)
	was, ok := e.Host(host)
	if !ok || part.Nodes.In(c, host) && !was.Joined {
		return []string{"it has not joined the cluster"}
	}
	var fields []string
	for _, change := range manifest.Diff(e.Config, c) {
		e, on := change.Effect, change.Effect.On()
		if e == "" || e.Is(manifest.EffectTool) || len(on) > 0 && !slices.ContainsFunc(on, func(role string) bool { return slices.Contains(roles, role) }) {
			continue
		}
		fields = append(fields, change.Path)
	}
	slices.Sort(fields)
	if fields = slices.Compact(fields); len(fields) > 0 {
		return []string{"it still has the configuration from before " + strings.Join(fields, ", ") + " changed"}
	}
	return []string{"it was neither checked nor repaired"}
}
