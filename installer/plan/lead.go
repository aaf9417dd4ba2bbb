package plan

import (
	"slices"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
)

// leadName represents the lead in a plan's text and in journals. No host of a config may have
// this name.
const leadName = manifest.LeadName

// Lead represents the master through which a step reaches the API: the first healthy one when
// the step starts. Before the cluster exists, it is the one on which kubeadm init runs. It
// returns no host if the cluster has no master.
func (s Scope) Lead() []manifest.Host {
	if len(s.Leads()) == 0 {
		return nil
	}
	return []manifest.Host{{Name: leadName}}
}

// IsLead reports whether h represents the lead.
func IsLead(h manifest.Host) bool { return h.Name == leadName }

// Leads returns the masters that can be the lead, in the order in which they are tried.
// Targets do not narrow them: a step on one host may use any master.
func (s Scope) Leads() []manifest.Host {
	if s.Want == nil {
		return nil
	}
	return s.WithoutTargets().Role(manifest.RoleMaster)
}

// InitialMaster returns the master on which kubeadm init runs, the first of the config; none
// if it is skipped or not a target.
func (s Scope) InitialMaster() []manifest.Host {
	masters := s.Want.HostsWith(manifest.RoleMaster)
	return s.Only(masters[:min(1, len(masters))])
}

// AdditionalMasters returns all masters except the initial one.
func (s Scope) AdditionalMasters() []manifest.Host {
	masters := s.Want.HostsWith(manifest.RoleMaster)
	return s.Only(masters[min(1, len(masters)):])
}

// Joining returns the desired nodes that have not joined the cluster yet; all of them if there
// is no record.
func (s Scope) Joining() []manifest.Host {
	return slices.DeleteFunc(slices.Clone(part.Nodes.Hosts(s.Want)), func(h manifest.Host) bool {
		if s.Exists == nil {
			return false
		}
		was, _ := s.Exists.Host(h.Name)
		return was.Joined
	})
}

// Leaving returns the hosts that leave the cluster, as they were applied.
func (s Scope) Leaving() []manifest.Host {
	if s.Before == nil {
		return nil
	}
	var out []manifest.Host
	for _, h := range s.Before.Spec.Hosts {
		if _, stays := s.Want.Host(h.Name); !stays {
			out = append(out, h)
		}
	}
	return out
}

// Departing returns the scope of the hosts that leave the cluster: the cluster as it was
// applied, narrowed to them. If none leaves, it has no hosts. Data is not preserved.
func (s Scope) Departing() Scope {
	out := s
	out.Targets = nil
	for _, h := range s.Leaving() {
		out.Targets = append(out.Targets, h.Name)
	}
	was := &manifest.Cluster{}
	if len(out.Targets) > 0 {
		*was = *s.Before
	}
	was.Spec.Etcd.PreserveData = false
	out.Want = was
	return out
}

// Peers returns the hosts that checks compare the targets with: with a cluster record all
// hosts of the cluster, otherwise only the targets.
func (s Scope) Peers() []manifest.Host {
	if s.Exists == nil {
		return s.Hosts()
	}
	return s.WithoutTargets().Hosts()
}

// Changed reports whether a field with one of some effects differs from what was applied.
func (s Scope) Changed(effects ...manifest.Effect) bool {
	if s.Exists == nil {
		return false
	}
	return slices.ContainsFunc(manifest.Diff(s.Exists.Config, s.Want), func(c manifest.Change) bool {
		return slices.ContainsFunc(effects, c.Effect.Is)
	})
}
