package state

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/manifest"
)

// Deletion describes a deletion: the cluster as it was applied, even if the current config
// differs.
type Deletion struct {
	Whole  *manifest.Cluster // including the skipped hosts
	Skip   []string          // the skipped hosts, sorted
	config []byte
}

// UnknownHostError reports that no host has a name.
type UnknownHostError struct {
	Name  string
	Known []string
}

func (e *UnknownHostError) Error() string {
	return fmt.Sprintf("no host of the cluster is called %s: it has %s", e.Name, strings.Join(e.Known, ", "))
}

// SkipError is the reason why hosts cannot be skipped.
type SkipError struct{ Why, advice string }

func (e *SkipError) Error() string { return e.Why }

// Advice returns what the user can do; see steps.Advice.
func (e *SkipError) Advice() string { return e.advice }

// OtherClusterError reports that the hosts belong to a cluster with another name than the
// config's.
type OtherClusterError struct{ Is, Config string }

func (e *OtherClusterError) Error() string {
	return fmt.Sprintf("the masters belong to cluster %s, but the config describes cluster %s", e.Is, e.Config)
}

// Advice returns what the user can do; see steps.Advice.
func (e *OtherClusterError) Advice() string { return "use the config of the cluster " + e.Is }

// NewDeletion plans the deletion of the cluster of c. r is its record, and left are the hosts
// that an earlier deletion skipped; either may be nil. skip are the hosts to skip: an
// *UnknownHostError reports a name that is not a host, a *SkipError a host that is required.
func NewDeletion(c *manifest.Cluster, r *manifest.Existing, left []Left, skip []string) (*Deletion, error) {
	d := &Deletion{Whole: c, Skip: slices.Compact(slices.Sorted(slices.Values(skip)))}
	var err error
	if d.config, err = c.Public(); err != nil {
		return nil, err
	}
	for _, l := range left { // the cluster was already deleted, except for these hosts
		if r != nil || l.Pending {
			continue
		}
		was, err := l.Cluster()
		if err != nil {
			return nil, err
		}
		r = &manifest.Existing{Config: was}
	}
	if r != nil && r.Config.Metadata.Name != c.Metadata.Name {
		return nil, &OtherClusterError{Is: r.Config.Metadata.Name, Config: c.Metadata.Name}
	}
	if r != nil {
		d.Whole = c.Applied(r.Config)
		if d.config, err = r.Config.Public(); err != nil {
			return nil, err
		}
	}
	return d, d.check()
}

func (d *Deletion) check() error {
	var known []string
	for _, h := range d.Whole.Spec.Hosts {
		known = append(known, h.Name)
	}
	for _, name := range d.Skip {
		if !slices.Contains(known, name) {
			return &UnknownHostError{Name: name, Known: known}
		}
	}
	if len(d.Skip) == len(known) {
		return &SkipError{Why: "all hosts would be skipped: nothing would be deleted", advice: "remove --skip-host for hosts that answer"}
	}
	if !d.Whole.Spec.Etcd.PreserveData {
		return nil
	}
	for _, name := range d.Skip {
		for _, role := range []string{manifest.RoleMaster, manifest.RoleEtcd} {
			if slices.Contains(d.Whole.RolesOf(name), role) {
				return &SkipError{Why: fmt.Sprintf("host %s (%s) cannot be skipped while etcd's data is preserved", name, role),
					advice: "bring the host back, or delete without --preserve-data"}
			}
		}
	}
	return nil
}

// Cluster returns the cluster without the skipped hosts.
func (d *Deletion) Cluster() *manifest.Cluster { return d.Whole.Without(d.Skip) }

// Skipping returns all skipped hosts, sorted, if the hosts in more are skipped as well. A *SkipError states
// why the deletion cannot continue without them.
func (d *Deletion) Skipping(more []string) ([]string, error) {
	wider := *d
	wider.Skip = slices.Compact(slices.Sorted(slices.Values(slices.Concat(d.Skip, more))))
	return wider.Skip, wider.check()
}

// Names returns the hosts that the deletion works on.
func (d *Deletion) Names() []string {
	var out []string
	for _, h := range d.Cluster().Spec.Hosts {
		out = append(out, h.Name)
	}
	return out
}
