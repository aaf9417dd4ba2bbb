package state

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/manifest"
)

// Deletion is what a deletion is about: the cluster as it was applied, whatever the
// config in hand says of it by now.
type Deletion struct {
	Whole  *manifest.Cluster // with the hosts that are passed over
	Skip   []string          // those, sorted
	config []byte
}

// UnknownHostError says that no host has a name.
type UnknownHostError struct {
	Name  string
	Known []string
}

func (e *UnknownHostError) Error() string {
	return fmt.Sprintf("no host of the cluster is called %s: it has %s", e.Name, strings.Join(e.Known, ", "))
}

// SkipError says why hosts cannot be passed over.
type SkipError struct{ Why, advice string }

func (e *SkipError) Error() string { return e.Why }

// Advice says what to do.
func (e *SkipError) Advice() string { return e.advice }

// OtherClusterError says that the hosts hold a cluster of another name than the config's.
type OtherClusterError struct{ Is, Config string }

func (e *OtherClusterError) Error() string {
	return fmt.Sprintf("the masters hold the cluster %s, and the config is that of %s", e.Is, e.Config)
}

// Advice says what to do.
func (e *OtherClusterError) Advice() string { return "use the config of the cluster " + e.Is }

// NewDeletion plans the deletion of the cluster of c. r is its record, and left the
// hosts that an earlier deletion left; either may be nil. skip are hosts to pass over:
// an *UnknownHostError says that there is none of a name, a *SkipError that one of them
// is needed.
func NewDeletion(c *manifest.Cluster, r *manifest.Existing, left []Left, skip []string) (*Deletion, error) {
	d := &Deletion{Whole: c, Skip: slices.Compact(slices.Sorted(slices.Values(skip)))}
	var err error
	if d.config, err = c.Public(); err != nil {
		return nil, err
	}
	for _, l := range left { // what was deleted already but for these hosts
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
		return &SkipError{Why: "all hosts are to be passed over: nothing would be deleted", advice: "leave out --skip-host for hosts that answer"}
	}
	if !d.Whole.Spec.Etcd.PreserveData {
		return nil
	}
	for _, name := range d.Skip {
		for _, role := range []string{manifest.RoleMaster, manifest.RoleEtcd} {
			if slices.Contains(d.Whole.RolesOf(name), role) {
				return &SkipError{Why: fmt.Sprintf("host %s (%s) cannot be passed over where etcd's data is to be preserved", name, role),
					advice: "bring the host back, or delete without --preserve-data"}
			}
		}
	}
	return nil
}

// Cluster is the cluster without the hosts that are passed over.
func (d *Deletion) Cluster() *manifest.Cluster { return d.Whole.Without(d.Skip) }

// Names are the hosts that the deletion reaches.
func (d *Deletion) Names() []string {
	var out []string
	for _, h := range d.Cluster().Spec.Hosts {
		out = append(out, h.Name)
	}
	return out
}
