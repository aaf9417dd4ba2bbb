package manifest

import (
	"reflect"
	"slices"
)

// Applied gives the cluster as it was applied, reached as c says: hosts, roles, kinds
// and folders are those of applied, and whoever is in both is dialed by c's address and
// login. Hosts that c has beside them keep their roles: an installation may have begun
// on them.
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

// inherits tells whether a host's login is what spec.ssh says for all.
func inherits(own, all SSH) bool {
	own.Agent, all.Agent = nil, nil
	return reflect.DeepEqual(own, all)
}

// Without gives the cluster without some hosts, as if the config did not name them.
func (c *Cluster) Without(names []string) *Cluster {
	return c.narrowed(func(name string) bool { return !slices.Contains(names, name) })
}

// Only gives the cluster with some of its hosts alone.
func (c *Cluster) Only(names []string) *Cluster {
	return c.narrowed(func(name string) bool { return slices.Contains(names, name) })
}

func (c *Cluster) narrowed(stays func(name string) bool) *Cluster {
	out := *c
	out.Spec.Hosts = slices.DeleteFunc(slices.Clone(c.Spec.Hosts), func(h Host) bool { return !stays(h.Name) })
	out.Spec.RoleGroups = c.Spec.RoleGroups.each(func(_ string, names []string) []string {
		return slices.DeleteFunc(names, func(name string) bool { return !stays(name) })
	})
	return &out
}

// each gives the groups that of makes of each role's names, ranges expanded.
func (r RoleGroups) each(of func(role string, names []string) []string) RoleGroups {
	one := func(role string) []string { return of(role, r.Names(role)) }
	return RoleGroups{Etcd: one(RoleEtcd), Master: one(RoleMaster), Worker: one(RoleWorker), Registry: one(RoleRegistry), LoadBalancer: one(RoleLoadBalancer)}
}
