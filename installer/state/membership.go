package state

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
)

// Membership describes a change of the hosts of a cluster.
type Membership struct {
	Before  *manifest.Cluster // with all hosts that were part of the cluster, as applied
	After   *manifest.Cluster // what is recorded in the end: as applied, with the new hosts and without those that leave
	Targets []string          // the hosts that join or leave, sorted
	Ignored []manifest.Change // differences between the config and the record that the change does not apply
}

// MembershipError is the reason why a host cannot join or leave a cluster.
type MembershipError struct{ Host, Why, advice string }

func (e *MembershipError) Error() string { return fmt.Sprintf("host %s: %s", e.Host, e.Why) }

// Advice returns what the user can do; see steps.Advice.
func (e *MembershipError) Advice() string { return e.advice }

// NewJoining plans that hosts of the config c join the cluster of the record r: those with some
// names, or without names all hosts of c that are new. A name that is part of the cluster
// already is checked again. Without targets there is nothing to do. An *UnknownHostError
// reports a name that is not a host of c, a *MembershipError a host that cannot join.
func NewJoining(c *manifest.Cluster, r *manifest.Existing, names []string, allowEven bool) (Membership, error) {
	if err := sameCluster(c, r); err != nil {
		return Membership{}, err
	}
	all := c.Applied(r.Config)
	fresh := func(name string) bool { _, was := r.Config.Host(name); return !was }
	targets := slices.Clone(names)
	if len(names) == 0 {
		for _, h := range all.Spec.Hosts {
			if fresh(h.Name) {
				targets = append(targets, h.Name)
			}
		}
	}
	if err := knownHosts(targets, c); err != nil {
		return Membership{}, err
	}
	var others []string
	for _, h := range all.Spec.Hosts {
		if fresh(h.Name) && !slices.Contains(targets, h.Name) {
			others = append(others, h.Name)
		}
	}
	m := Membership{Before: r.Config, After: all.Without(others), Targets: sorted(targets)}
	for _, name := range m.Targets {
		if err := m.joins(name, fresh(name)); err != nil {
			return Membership{}, err
		}
	}
	if err := m.checkEven(allowEven); err != nil {
		return Membership{}, err
	}
	var err error
	if m.Ignored = ignored(c, m); len(m.Ignored) == 0 {
		m.After, err = c.WithoutHosts(others)
	} else {
		m.After, err = m.After.WithRecord(r.Config, c, slices.DeleteFunc(slices.Clone(m.Targets), func(name string) bool { return !fresh(name) }), nil)
	}
	return m, err
}

// NewMembers is NewJoining for hosts that are etcd members and nothing else: without names, all new
// ones of c.
func NewMembers(c *manifest.Cluster, r *manifest.Existing, names []string, allowEven bool) (Membership, error) {
	if len(names) > 0 {
		return NewJoining(c, r, names, allowEven)
	}
	for _, h := range part.StoreOf(c).Members {
		if _, was := r.Config.Host(h.Name); !was && CheckMembersOnly(c, []string{h.Name}) == nil {
			names = append(names, h.Name)
		}
	}
	if len(names) == 0 {
		return Membership{Before: r.Config, After: r.Config}, sameCluster(c, r)
	}
	return NewJoining(c, r, names, allowEven)
}

// CheckMembersOnly returns a *MembershipError for a host of c that is no etcd member, or has another
// role too.
func CheckMembersOnly(c *manifest.Cluster, names []string) error {
	for _, name := range names {
		roles := slices.DeleteFunc(c.RolesOf(name), func(role string) bool { return role == manifest.RoleEtcd })
		switch {
		case !part.Members.In(c, name):
			return &MembershipError{Host: name, Why: "it is part of the cluster without the role etcd, and the roles of a host do not change",
				advice: "list a host of its own in spec.roleGroups.etcd, or delete this one with `kubexm node delete` and add it again"}
		case len(roles) > 0:
			return &MembershipError{Host: name, Why: "it also has the role " + strings.Join(roles, ", "),
				advice: "run `kubexm node add " + name + "` or `kubexm node delete " + name + "`: its etcd member joins and leaves with it"}
		}
	}
	return nil
}

// joins checks the roles of one host that joins.
func (m Membership) joins(name string, fresh bool) error {
	switch {
	case len(m.After.RolesOf(name)) == 0:
		return &MembershipError{Host: name, Why: "the config gives it no role", advice: "list it in spec.roleGroups"}
	case fresh && part.RegistryHosts.In(m.After, name):
		return &MembershipError{Host: name, Why: "the cluster has a registry host already, and the registry cannot be moved", advice: "remove the host from spec.roleGroups.registry"}
	}
	return nil
}

// checkEven refuses an even number of etcd members: it tolerates no more failures than one
// member less.
func (m Membership) checkEven(allow bool) error {
	before, after := part.StoreOf(m.Before), part.StoreOf(m.After)
	n := len(after.Members)
	if allow || after.Kind == part.External || n == len(before.Members) || n%2 == 1 {
		return nil
	}
	what := "master"
	if after.Kind == part.Service {
		what = "host with the role etcd"
	}
	return &MembershipError{Host: m.Targets[len(m.Targets)-1], Why: fmt.Sprintf("etcd would have %d members, and tolerates no more failures than with %d", n, n-1),
		advice: "add one more " + what + " in the same command, or add --allow-even"}
}

// NewLeaving plans that hosts leave the cluster of the record r. A host that only the config c or
// the record here, this machine's copy, lists has left already: an interrupted run may have
// recorded that, and not ended. An *UnknownHostError reports a name that none of them lists, a
// *MembershipError a host that cannot leave. here may be nil.
func NewLeaving(c *manifest.Cluster, r, here *manifest.Existing, names []string) (Membership, error) {
	if err := sameCluster(c, r); err != nil {
		return Membership{}, err
	}
	known := []*manifest.Cluster{r.Config, c}
	if here != nil {
		known = append(known, here.Config)
	}
	if err := knownHosts(names, known...); err != nil {
		return Membership{}, err
	}
	applied := c.Applied(r.Config)
	var was []string
	for _, h := range r.Config.Spec.Hosts {
		was = append(was, h.Name)
	}
	before := applied.Only(was)
	m := Membership{Before: before, After: before.Without(names), Targets: sorted(names)}
	listed := slices.DeleteFunc(slices.Clone(names), func(name string) bool { _, ok := c.Host(name); return !ok })
	now, err := c.WithoutHosts(listed)
	if err != nil {
		return Membership{}, err
	}
	if m.Ignored = ignored(now, m); len(m.Ignored) == 0 && len(now.Spec.Hosts) == len(m.After.Spec.Hosts) {
		m.After = now
	} else if m.After, err = m.After.WithRecord(r.Config, nil, nil, names); err != nil {
		return Membership{}, err
	}
	for _, name := range m.Targets {
		if err := m.leaves(name); err != nil {
			return Membership{}, err
		}
	}
	return m, nil
}

// leaves checks whether one host may leave.
func (m Membership) leaves(name string) error {
	no := func(why, advice string) error { return &MembershipError{Host: name, Why: why, advice: advice} }
	before, after := m.Before, m.After
	endpoint, h := part.EndpointOf(before), hostOf(before, name)
	switch {
	case part.Masters.In(before, name) && len(part.Masters.Hosts(after)) == 0:
		return no("it is the last master of the cluster", "add another master first, or delete the cluster with `kubexm delete cluster`")
	case part.RegistryHosts.In(before, name):
		return no("all nodes pull images from the registry on it", "the registry host stays for as long as the cluster exists")
	case part.StoreOf(before).Kind == part.Service && part.Members.In(before, name) && len(part.StoreOf(after).Members) == 0:
		return no("it is the last etcd member of the cluster", "add another one first")
	case part.Masters.In(before, name) && endpoint.Front == part.NoFront && slices.Contains(before.NodeAddresses(h), endpoint.VIP):
		return no("spec.controlPlaneEndpoint.address is its address: all nodes reach the API server there", "such an endpoint cannot be moved; create the next cluster without an address, or with a virtual IP")
	case part.Balancers.In(before, name) && endpoint.Front == part.HostsFront && len(part.Balancers.Hosts(after)) == 0:
		return no("it is the last load balancer of the cluster", "add another one first")
	case slices.Contains(before.Spec.System.NTPServers, name):
		return no("the other hosts take the time from it (spec.system.ntpServers)", "list another time server, run `kubexm install`, then delete the host")
	}
	return nil
}

func hostOf(c *manifest.Cluster, name string) manifest.Host {
	h, _ := c.Host(name)
	return h
}

func sameCluster(c *manifest.Cluster, r *manifest.Existing) error {
	if r.Config.Metadata.Name != c.Metadata.Name {
		return &OtherClusterError{Is: r.Config.Metadata.Name, Config: c.Metadata.Name}
	}
	return nil
}

// knownHosts returns an *UnknownHostError for a name that is not a host of any of some configs. It
// lists the hosts of the first.
func knownHosts(names []string, configs ...*manifest.Cluster) error {
	var known []string
	for _, h := range configs[0].Spec.Hosts {
		known = append(known, h.Name)
	}
	names = slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		return slices.ContainsFunc(configs[1:], func(c *manifest.Cluster) bool { _, ok := c.Host(name); return ok })
	})
	for _, name := range names {
		if !slices.Contains(known, name) {
			return &UnknownHostError{Name: name, Known: known}
		}
	}
	return nil
}

func sorted(names []string) []string { return slices.Compact(slices.Sorted(slices.Values(names))) }

// ignored returns the differences between a config and the cluster that is recorded, apart from
// hosts that join or leave, their roles, and fields that concern only kubexm.
func ignored(c *manifest.Cluster, m Membership) []manifest.Change {
	return slices.DeleteFunc(manifest.Diff(m.After, c), func(x manifest.Change) bool {
		_, was := m.Before.Host(x.Item)
		return x.Path == "spec.hosts" || strings.HasPrefix(x.Path, "spec.roleGroups.") && !was || x.Effect == "" || x.Effect.Is(manifest.EffectTool)
	})
}
