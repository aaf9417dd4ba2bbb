package manifest

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// validate holds the fields of c against each other.
func (d *document) validate(c *Cluster) {
	d.validateHosts(c)
	d.validateRoles(c)
	d.validateEndpoint(c)
	d.validateEtcd(c)
	d.validateRanges(c)
	d.validateKubernetes(c)
	d.validateRegistry(c)
	d.validateAddons(c)
	d.validateSystem(c)
	d.validateBundle(c)
	d.validateSources(c.Spec.Sources, "spec.sources")
}

// fail and warn report at the place of path.
func (d *document) fail(path, advice, format string, args ...any) {
	d.add(Error, d.nearestPlace(path), path, fmt.Sprintf(format, args...), advice)
}

func (d *document) warn(path, advice, format string, args ...any) {
	d.add(Warning, d.nearestPlace(path), path, fmt.Sprintf(format, args...), advice)
}

func (d *document) validateHosts(c *Cluster) {
	names, addresses := map[string]string{}, map[string]string{}
	for i, h := range c.Spec.Hosts {
		path := indexed("spec.hosts", i)
		if first, ok := names[h.Name]; ok && h.Name != "" {
			d.fail(path+".name", "give every host a name of its own", "%s is the name of %s already", h.Name, first)
		}
		names[h.Name] = path
		d.hostAddresses(h, path, addresses)
		d.login(h.Login, path)
		if h.JumpHost != nil && d.written[path+".jumpHost"] {
			d.login(h.JumpHost.Login, path+".jumpHost")
		}
		for key, value := range h.Labels {
			if advice := labelAdvice(key, value); advice != "" {
				d.fail(join(path+".labels", key), advice, "%s=%s is no label", shown(key), shown(value))
			}
		}
		for j, t := range h.Taints {
			if advice := labelAdvice(t.Key, t.Value); advice != "" && t.Key != "" {
				d.fail(indexed(path+".taints", j), advice, "%s=%s is no taint", shown(t.Key), shown(t.Value))
			}
		}
	}
	d.login(c.Spec.SSH.Login, "spec.ssh")
}

// hostAddresses finds addresses that two hosts share, and more than one of a family.
func (d *document) hostAddresses(h Host, path string, seen map[string]string) {
	own := map[string]bool{}
	use := func(at, addr string, key string) {
		if addr == "" || own[key] {
			return
		}
		own[key] = true
		if first, ok := seen[key]; ok {
			d.fail(at, "give every host an address of its own", "%s is an address of %s already", addr, first)
			return
		}
		seen[key] = path
	}
	use(path+".address", h.Address, fmt.Sprintf("%s:%d", h.Address, h.Port))
	families := map[bool]bool{}
	for i, a := range h.InternalAddress {
		ip, err := netip.ParseAddr(a)
		if err != nil {
			continue
		}
		at := indexed(path+".internalAddress", i)
		if families[ip.Is4()] || i > 1 {
			d.fail(at, "write one IPv4 and one IPv6 address at most", "%s is a second address of its family", a)
		}
		families[ip.Is4()] = true
		use(at, a, "internal "+ip.String())
	}
}

// login checks what belongs together in a way to log in.
func (d *document) login(l Login, path string) {
	if l.HostKeyPolicy == "pinned" && l.HostKey == "" {
		d.fail(path+".hostKeyPolicy", "write hostKey too: the public key, or its fingerprint SHA256:…", "is pinned, and there is no hostKey")
	}
	if l.HostKey != "" && l.HostKeyPolicy != "pinned" && d.written[path+".hostKey"] {
		d.fail(path+".hostKey", "write hostKeyPolicy: pinned", "counts with hostKeyPolicy pinned alone, and that is %s", l.HostKeyPolicy)
	}
	if !l.Passphrase.IsZero() && l.PrivateKeyPath == "" {
		d.fail(path+".passphrase", "write privateKeyPath, or leave the passphrase out", "there is no private key that it opens")
	}
	if l.ConnectionTimeout < 0 {
		d.fail(path+".connectionTimeout", "write a positive time, as in 15s", "is negative")
	}
}

func (d *document) validateRoles(c *Cluster) {
	known := map[string]bool{}
	for _, h := range c.Spec.Hosts {
		known[h.Name] = true
	}
	if len(c.Spec.Hosts) == 0 {
		for _, role := range allRoles {
			if len(c.Spec.RoleGroups.entries(role)) > 0 {
				d.fail("spec.roleGroups."+role, "list the hosts in spec.hosts", "names hosts, and spec.hosts has none")
			}
		}
		return
	}
	used := map[string]bool{}
	for _, role := range allRoles {
		path := "spec.roleGroups." + role
		seen := map[string]bool{}
		for i, entry := range c.Spec.RoleGroups.entries(role) {
			names, err := ExpandRange(entry)
			if err != nil {
				d.fail(indexed(path, i), "write a name, or a range as in node[5:7]", "%v", err)
				continue
			}
			var missing []string
			for _, n := range names {
				if !known[n] {
					missing = append(missing, n)
				}
				if seen[n] {
					d.warn(indexed(path, i), "name it once", "%s is named twice", n)
				}
				seen[n], used[n] = true, true
			}
			if len(missing) > 0 {
				d.fail(indexed(path, i), hostAdvice(missing[0], known), "%s %s in spec.hosts", strings.Join(missing[:min(5, len(missing))], ", "), isAre(missing))
			}
		}
	}
	d.roleRules(c)
	for i, h := range c.Spec.Hosts {
		if !used[h.Name] && h.Name != "" && !slices.Contains(c.Spec.System.NTPServers, h.Name) {
			d.warn(indexed("spec.hosts", i), "name it in spec.roleGroups, or leave it out", "%s has no role", h.Name)
		}
	}
}

var allRoles = []string{RoleEtcd, RoleMaster, RoleWorker, RoleRegistry, RoleLoadBalancer}

func isAre(xs []string) string {
	if len(xs) == 1 {
		return "is not"
	}
	return "are not"
}

func hostAdvice(name string, known map[string]bool) string {
	var names []string
	for n := range known {
		names = append(names, n)
	}
	slices.Sort(names)
	if n := nearest(name, names); n != "" {
		return "did you mean " + n + "?"
	}
	return "add it to spec.hosts, or take it out here"
}

func (d *document) roleRules(c *Cluster) {
	r := c.Spec.RoleGroups
	if len(r.Master) == 0 {
		d.fail("spec.roleGroups.master", "name at least one host", "has no host")
	}
	if len(r.Names(RoleRegistry)) > 1 {
		d.fail("spec.roleGroups.registry", "name one host", "%d hosts have the role, and one at most can", len(r.Names(RoleRegistry)))
	}
	if c.Spec.Etcd.Type == "kubexm" && len(r.Etcd) == 0 {
		d.fail("spec.roleGroups.etcd", "name one, three or five hosts, or choose etcd type kubeadm", "has no host, and spec.etcd.type is kubexm")
	}
	if c.Spec.Etcd.Type != "kubexm" && len(r.Etcd) > 0 {
		d.warn("spec.roleGroups.etcd", "leave it out", "means nothing where spec.etcd.type is %s", c.Spec.Etcd.Type)
	}
	if n := len(r.Names(RoleEtcd)); n > 0 && n%2 == 0 {
		d.warn("spec.roleGroups.etcd", "use an odd number", "%d members tolerate no more failures than %d", n, n-1)
	}
	if n := len(r.Names(RoleMaster)); c.Spec.Etcd.Type == "kubeadm" && n > 0 && n%2 == 0 {
		d.warn("spec.roleGroups.master", "use an odd number", "each master runs an etcd member, and %d tolerate no more failures than %d", n, n-1)
	}
	if len(r.Worker) == 0 {
		d.warn("spec.roleGroups.worker", "name hosts that run pods", "has no host: only what tolerates masters will run")
	}
	for _, n := range r.Names(RoleLoadBalancer) {
		if slices.Contains(r.Names(RoleMaster), n) && c.Spec.ControlPlaneEndpoint.Port == 6443 {
			d.fail("spec.roleGroups.loadbalancer", "use hosts of their own, or another controlPlaneEndpoint.port",
				"%s is a master too, whose API server listens on port 6443 already", n)
		}
	}
}

func labelAdvice(key, value string) string {
	prefix, name, ok := strings.Cut(key, "/")
	if !ok {
		prefix, name = "", key
	}
	switch {
	case ok && !hostnamePattern.MatchString(prefix):
		return "the part before / is a DNS name in lower case"
	case !labelName.MatchString(name) || len(name) > 63:
		return "a key is letters, digits, dashes, underscores and dots, at most 63"
	case value != "" && (!labelName.MatchString(value) || len(value) > 63):
		return "a value is letters, digits, dashes, underscores and dots, at most 63"
	}
	return ""
}
