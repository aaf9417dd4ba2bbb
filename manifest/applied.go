package manifest

import (
	"reflect"
	"slices"
)

// Applied returns the applied cluster with the connection settings of c. Hosts, roles, types
// and folders are those of applied. Hosts in both configs have the address and login of c.
// Hosts that only c has are added with their roles, because an installation on them may have
// begun.
func (c *Cluster) Applied(applied *Cluster) *Cluster {
	out := *applied
	s := &out.Spec
	s.SSH, s.Sources, s.Bundle.Trust, s.Etcd.PreserveData = c.Spec.SSH, c.Spec.Sources, c.Spec.Bundle.Trust, c.Spec.Etcd.PreserveData
	if e := c.Spec.Etcd.External; e.CAFile != "" {
		s.Etcd.External.CAFile, s.Etcd.External.CertFile, s.Etcd.External.KeyFile = e.CAFile, e.CertFile, e.KeyFile
	}
	s.Registry.Auths = c.Spec.Registry.Auths
	s.Hosts = nil
	for _, h := range applied.Spec.Hosts {
		if now, ok := c.Host(h.Name); ok {
			h.Address, h.SSH = now.Address, now.SSH
		} else if inherits(h.SSH, applied.Spec.SSH) {
			h.SSH = c.Spec.SSH
			useAgent(&h.Login)
		}
		s.Hosts = append(s.Hosts, h)
	}
	for _, h := range c.Spec.Hosts {
		if _, ok := applied.Host(h.Name); !ok {
			s.Hosts = append(s.Hosts, h)
		}
	}
	s.RoleGroups = s.RoleGroups.each(func(role string, _ []string) []string {
		names := applied.Spec.RoleGroups.Names(role)
		for _, name := range c.Spec.RoleGroups.Names(role) {
			if _, ok := applied.Host(name); !ok {
				names = append(names, name)
			}
		}
		return names
	})
	return &out
}

// inherits reports whether a host's login equals spec.ssh.
func inherits(own, all SSH) bool {
	own.Agent, all.Agent = nil, nil
	return reflect.DeepEqual(own, all)
}

// Without returns the cluster without some hosts, as if the config did not list them.
func (c *Cluster) Without(names []string) *Cluster {
	return c.filtered(func(name string) bool { return !slices.Contains(names, name) })
}

// Only returns the cluster with only some of its hosts.
func (c *Cluster) Only(names []string) *Cluster {
	return c.filtered(func(name string) bool { return slices.Contains(names, name) })
}

func (c *Cluster) filtered(keep func(name string) bool) *Cluster {
	out := *c
	out.Spec.Hosts = slices.DeleteFunc(slices.Clone(c.Spec.Hosts), func(h Host) bool { return !keep(h.Name) })
	out.Spec.RoleGroups = c.Spec.RoleGroups.each(func(_ string, names []string) []string {
		return slices.DeleteFunc(names, func(name string) bool { return !keep(name) })
	})
	return &out
}

// each returns the role groups that of returns for each role's names, with expanded ranges.
func (r RoleGroups) each(of func(role string, names []string) []string) RoleGroups {
	one := func(role string) []string { return of(role, r.Names(role)) }
	return RoleGroups{Etcd: one(RoleEtcd), Master: one(RoleMaster), Worker: one(RoleWorker), Registry: one(RoleRegistry), LoadBalancer: one(RoleLoadBalancer)}
}
