package manifest

import "slices"

// Existing is the cluster record: the result of the last operation on a cluster. Nothing in
// it was observed on hosts, which may have changed since.
type Existing struct {
	Config  *Cluster // the applied config; its secrets are references
	Set     string   // the release of the applied lock, such as "v1.32.2"
	Root    string   // "sha256:…" of the bundle's index
	Serial  int64    // of the applied bundle; 0: not in the record
	Highest int64    // highest serial that the cluster has seen
	Hosts   []ExistingHost

	Lock       string            // "sha256:…" of the bundle's lock
	Components map[string]string // versions by component, of the complete release; nil: not in the record
	Lead       string            // the master that the last operation used as its API entry point; "": not in the record
	Away       []string          // names of hosts of the config that the last operation skipped
	Revision   int64             // grows with each change of the record; 0: not in the record
}

// ExistingHost is what was applied to one host.
type ExistingHost struct {
	Name       string
	Roles      []string          // in the order of the config
	Components map[string]string // versions by component; nil: not in the record
	Joined     bool              // it joined the cluster; a host without a node's role never joins
}

// Host returns what was applied to a host.
func (e *Existing) Host(name string) (ExistingHost, bool) {
	i := slices.IndexFunc(e.Hosts, func(h ExistingHost) bool { return h.Name == name })
	if i < 0 {
		return ExistingHost{}, false
	}
	return e.Hosts[i], true
}
