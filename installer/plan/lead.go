package plan

import (
	"slices"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
)

// leadName is the one word for the lead in a plan's text and in the names of what was
// done. No host of a config has it.
const leadName = manifest.LeadName

// Lead stands for the master through which a step speaks to the cluster: the first one
// that is healthy when the step begins. Before there is a cluster it is the one on which
// kubeadm init makes it. It gives no host where the cluster has no master.
func (s Scope) Lead() []manifest.Host {
	if len(s.Leads()) == 0 {
		return nil
	}
	return []manifest.Host{{Name: leadName}}
}

// IsLead tells whether h stands for the lead.
func IsLead(h manifest.Host) bool { return h.Name == leadName }

// Leads gives the masters of which the lead is one, in the order in which they are
// asked. Targets do not narrow them: a step on one host may ask through any master.
func (s Scope) Leads() []manifest.Host {
	if s.Want == nil {
		return nil
	}
	return s.Whole().Role(manifest.RoleMaster)
}

// Initial gives the master on which kubeadm init makes the cluster, the first of the
// config: none where it is away, or no target.
func (s Scope) Initial() []manifest.Host {
	masters := s.Want.HostsWith(manifest.RoleMaster)
	return s.Only(masters[:min(1, len(masters))])
}

// Further gives the masters beside the initial one.
func (s Scope) Further() []manifest.Host {
	masters := s.Want.HostsWith(manifest.RoleMaster)
	return s.Only(masters[min(1, len(masters)):])
}

// Joining gives the nodes that are wanted and have not joined the cluster yet; where
// nothing exists, all of them.
func (s Scope) Joining() []manifest.Host {
	return slices.DeleteFunc(slices.Clone(part.Nodes.Hosts(s.Want)), func(h manifest.Host) bool {
		if s.Exists == nil {
			return false
		}
		was, _ := s.Exists.Host(h.Name)
		return was.Joined
	})
}

// Leaving gives the hosts that are part of what exists and are not wanted any more, as
// they were applied.
func (s Scope) Leaving() []manifest.Host {
	if s.Exists == nil {
		return nil
	}
	var out []manifest.Host
	for _, was := range s.Exists.Hosts {
		if _, stays := s.Want.Host(was.Name); stays {
			continue
		}
		if h, ok := s.Exists.Config.Host(was.Name); ok {
			out = append(out, h)
		}
	}
	return out
}

// Changed tells whether a field with one of some effects differs from what was applied.
func (s Scope) Changed(effects ...manifest.Effect) bool {
	if s.Exists == nil {
		return false
	}
	return slices.ContainsFunc(manifest.Diff(s.Exists.Config, s.Want), func(c manifest.Change) bool {
		return slices.ContainsFunc(effects, c.Effect.Is)
	})
}
