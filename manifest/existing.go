package manifest

import "slices"

// Existing is the record of what the last operation on a cluster finished with. Nothing
// in it was observed: hosts may have changed since.
type Existing struct {
	Config  *Cluster // as it was applied; its secrets are references
	Set     string   // the release of the lock that was applied, such as "v1.32.2"
	Root    string   // "sha256:…" of the bundle's index
	Serial  int64    // of the bundle that was applied; 0: the record does not say
	Highest int64    // serial that the cluster has seen
	Hosts   []ExistingHost

	Lock       string            // "sha256:…" of the bundle's lock
	Components map[string]string // versions by component, of the whole release; nil: the record does not say
	Lead       string            // the master that the last operation used as its way in; "": the record does not say
	Away       []string          // hosts of the config on which the last operation did nothing, by name
	Revision   int64             // grows with each change of the record; 0: the record does not say
}

// ExistingHost is what was applied to one host.
type ExistingHost struct {
	Name       string
	Roles      []string          // in the order of the config
	Components map[string]string // versions by component; nil: the record does not say
	Joined     bool              // it became a member of the cluster; a host without a role of a node never does
}

// Host gives what was applied to a host.
func (e *Existing) Host(name string) (ExistingHost, bool) {
	i := slices.IndexFunc(e.Hosts, func(h ExistingHost) bool { return h.Name == name })
	if i < 0 {
		return ExistingHost{}, false
	}
	return e.Hosts[i], true
}
