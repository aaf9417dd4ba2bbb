package manifest

import (
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/manifest/document"
)

// maxNames is the maximum number of names in all roles together.
const maxNames = 100_000

var allRoles = []string{RoleEtcd, RoleMaster, RoleWorker, RoleRegistry, RoleLoadBalancer}

func (d *config) validateRoles(c *Cluster) {
	if !d.Valid("spec.hosts") && len(c.Spec.Hosts) == 0 {
		return // the hosts are unknown
	}
	names := c.Spec.RoleGroups.hasEntries()
	switch {
	case len(c.Spec.Hosts) == 0 && names:
		d.Fail("spec.roleGroups", "list the hosts in spec.hosts", "lists hosts, but spec.hosts is empty")
		return
	case len(c.Spec.Hosts) == 0:
		return
	case !names:
		if d.Valid("spec.hosts") {
			d.Fail("spec.roleGroups", "list the hosts of the roles etcd, master and worker", "lists no hosts")
		}
		return
	}
	used := d.roleNames(c)
	d.roleRules(c)
	if !d.Valid("spec.roleGroups") {
		return // a host without a role may be misspelt in spec.roleGroups
	}
	for i, h := range c.Spec.Hosts {
		if !used[h.Name] && h.Name != "" && !slices.Contains(c.Spec.System.NTPServers, h.Name) {
			d.Warn(document.Indexed("spec.hosts", i), "list it in spec.roleGroups, or remove it", "%s has no role", h.Name)
		}
	}
}

// hasEntries reports whether any role has an entry.
func (r RoleGroups) hasEntries() bool {
	return slices.ContainsFunc(allRoles, func(role string) bool { return len(r.entries(role)) > 0 })
}

// roleNames checks the names in roles against the hosts, and returns the names in use.
func (d *config) roleNames(c *Cluster) (used map[string]bool) {
	known, allNamed := map[string]bool{}, true
	for _, h := range c.Spec.Hosts {
		known[h.Name] = true
		allNamed = allNamed && h.Name != ""
	}
	used = map[string]bool{}
	total := 0
	for _, role := range allRoles {
		seen := map[string]bool{}
		for i, entry := range c.Spec.RoleGroups.entries(role) {
			at := document.Indexed("spec.roleGroups."+role, i)
			names, err := ExpandRange(entry)
			if err != nil {
				d.Fail(at, "write a name, or a range as in node[5:7]", "%v", err)
				continue
			}
			if total += len(names); total > maxNames {
				d.Fail("spec.roleGroups", "write smaller ranges", "represents more than %d names", maxNames)
				return used
			}
			var missing, twice []string
			for _, n := range names {
				if !known[n] {
					missing = append(missing, n)
				}
				if seen[n] {
					twice = append(twice, n)
				}
				seen[n], used[n] = true, true
			}
			if len(missing) > 0 && allNamed { // otherwise the host without a name may be the missing one
				d.Fail(at, hostAdvice(entry, known), "%s: not in spec.hosts", someOf(missing))
			}
			if len(twice) > 0 {
				d.Warn(at, "list it once", "%s: listed twice in this role", someOf(twice))
			}
		}
	}
	return used
}

// someOf returns the first names of a long list.
func someOf(names []string) string {
	if len(names) > 5 {
		return strings.Join(names[:5], ", ") + " and others"
	}
	return strings.Join(names, ", ")
}

func hostAdvice(name string, known map[string]bool) string {
	var names []string
	for n := range known {
		names = append(names, n)
	}
	slices.Sort(names)
	if n := document.Nearest(name, names); n != "" && !strings.Contains(name, "[") {
		return "did you mean " + n + "?"
	}
	return "add it to spec.hosts, or remove it from the role"
}

func (d *config) roleRules(c *Cluster) {
	r, etcd := c.Spec.RoleGroups, c.Spec.Etcd.Type
	if len(r.Master) == 0 {
		d.Fail("spec.roleGroups.master", "list at least one host", "has no host")
	}
	if n := len(r.Names(RoleRegistry)); n > 1 {
		d.Fail("spec.roleGroups.registry", "list one host", "%d hosts have the role, but only one is allowed", n)
	}
	if d.Valid("spec.etcd.type") {
		d.etcdRoles(r, etcd)
	}
	if len(r.Worker) == 0 {
		d.Warn("spec.roleGroups.worker", "list hosts that run pods", "has no host: only pods that tolerate the taint of masters will run")
	}
	for _, n := range r.Names(RoleLoadBalancer) {
		if slices.Contains(r.Names(RoleMaster), n) && c.Spec.ControlPlaneEndpoint.Port == 6443 {
			d.Fail("spec.roleGroups.loadbalancer", "use separate hosts, or another controlPlaneEndpoint.port",
				"%s is also a master, whose API server already listens on port 6443", n)
		}
	}
}

func (d *config) etcdRoles(r RoleGroups, etcd string) {
	if etcd != "kubexm" && len(r.Etcd) > 0 {
		d.Warn("spec.roleGroups.etcd", "leave it out", "has no effect if spec.etcd.type is %s", etcd)
		return
	}
	if n := len(r.Names(RoleEtcd)); n > 0 && n%2 == 0 {
		d.Warn("spec.roleGroups.etcd", "use an odd number", "%d members tolerate no more failures than %d", n, n-1)
	}
	if n := len(r.Names(RoleMaster)); etcd == "kubeadm" && n > 0 && n%2 == 0 {
		d.Warn("spec.roleGroups.master", "use an odd number", "each master runs an etcd member, and %d tolerate no more failures than %d", n, n-1)
	}
}
