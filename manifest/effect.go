package manifest

import (
	"slices"
	"strings"
)

// Effect is what a change of a field requires in an existing cluster: the value of the struct
// tag effect. It is one effect, or several separated by commas. After immutable and upgrade,
// the further effects only name the component that the field belongs to:
// "immutable=create,etcd" is a field of etcd that cannot change in an existing cluster.
type Effect string

// The effects that code compares by name. effectRows lists all effects.
const (
	EffectTool      Effect = "tool"
	EffectImmutable Effect = "immutable"
	EffectUpgrade   Effect = "upgrade"
	EffectNodes     Effect = "nodes"
)

// effectRow is one effect.
type effectRow struct {
	effect Effect
	// text completes "the change …"; {hosts} is replaced by the affected hosts.
	text string
	on   []string // roles of the affected hosts; none: Change.Item is the host, or all hosts
}

// effectRows is the table of all effects. Effects of the same component that differ in what
// is done have an argument after =.
func effectRows() []effectRow {
	masters, nodes, members := []string{RoleMaster}, []string{RoleMaster, RoleWorker}, []string{RoleEtcd}
	return []effectRow{
		{"immutable=create", "requires a new cluster: this one was created with the old value", masters},
		{"immutable=join", "requires removing the host from the cluster and adding it again: it joined with the old value", nil},
		{"immutable=addon", "removes the add-on and installs it again", masters},
		{EffectUpgrade, "is a version change and requires an upgrade", nil},
		{EffectNodes, "adds hosts to the cluster or removes them", nil},
		{EffectTool, "affects kubexm only: nothing changes on the hosts", nil},
		{"host", "configures {hosts}, one at a time, pods keep running", nil},
		{"runtime", "restarts the container runtime on {hosts}, one at a time, pods keep running", nodes},
		{"runtime=files", "rewrites the container runtime's registry settings on {hosts}, without a restart", nodes},
		{"kubelet", "restarts the kubelet on {hosts}, one at a time, pods keep running", nodes},
		{"kubelet=drain", "drains {hosts} and restarts the kubelet, one node at a time", nodes},
		{"apiserver", "restarts the API server on {hosts}, one at a time", masters},
		{"apiserver=certificate", "reissues the API server's certificate on {hosts} and restarts the API server, one at a time", masters},
		{"controller-manager", "restarts the controller manager on {hosts}, one at a time", masters},
		{"scheduler", "restarts the scheduler on {hosts}, one at a time", masters},
		{"etcd", "restarts etcd on {hosts}, one member at a time", members},
		{"proxy", "restarts kube-proxy on {hosts}, one at a time, pods keep running", nodes},
		{"network", "restarts the pod network on {hosts}, one at a time, pods keep running", nodes},
		{"network=outage", "replaces the pod network: pods on {hosts} have no network until they are recreated", nodes},
		{"dns", "rewrites the configuration of CoreDNS, whose pods are replaced, and of the nodes' DNS caches, which read it without a restart", masters},
		{"labels", "sets labels and taints of {hosts}", nil},
		{"addons", "applies the add-on again, or removes it", masters},
		{"registry", "restarts the registry on {hosts}, nodes cannot pull images meanwhile", []string{RoleRegistry}},
		{"lb", "reconfigures the control plane endpoint on {hosts}", append(masters[:1:1], RoleLoadBalancer)},
		{"timers=certs", "rewrites the timer that renews certificates on {hosts}, without a restart", masters},
		{"timers=backup", "rewrites the timer that backs up etcd on {hosts}, without a restart", members},
	}
}

// EveryEffect lists all effects.
func EveryEffect() []Effect {
	var out []Effect
	for _, r := range effectRows() {
		out = append(out, r.effect)
	}
	return out
}

// rowOf returns the row of one effect.
func rowOf(e Effect) (effectRow, bool) {
	rows := effectRows()
	i := slices.IndexFunc(rows, func(r effectRow) bool { return r.effect == e })
	if i < 0 {
		return effectRow{}, false
	}
	return rows[i], true
}

// Each returns the effects as a list.
func (e Effect) Each() []Effect {
	var out []Effect
	for one := range strings.SplitSeq(string(e), ",") {
		if one != "" {
			out = append(out, Effect(one))
		}
	}
	return out
}

// Is reports whether e contains the effect one, with any argument.
func (e Effect) Is(one Effect) bool {
	return slices.ContainsFunc(e.Each(), func(x Effect) bool { name, _, _ := strings.Cut(string(x), "="); return name == string(one) })
}

// On returns the roles of the hosts that a change affects. It returns none if Change.Item is
// the host, or if all hosts are affected.
func (e Effect) On() []string {
	all := e.Each()
	if len(all) > 1 && e.firstOnly() {
		all = all[1:]
	}
	var out []string
	for _, one := range all {
		r, _ := rowOf(one)
		for _, role := range r.on {
			if !slices.Contains(out, role) {
				out = append(out, role)
			}
		}
	}
	return out
}

// firstOnly reports whether only the first effect applies and the others only name the
// component.
func (e Effect) firstOnly() bool {
	all := e.Each()
	return len(all) > 0 && (all[0].Is(EffectImmutable) || all[0].Is(EffectUpgrade))
}

// Describe returns a text that completes "the change …". hosts returns the names of the hosts
// with some roles, or of all hosts for no roles.
func (e Effect) Describe(hosts func(roles []string) string) string {
	var out []string
	for _, one := range e.Each() {
		r, _ := rowOf(one)
		if strings.Contains(r.text, "{hosts}") {
			r.text = strings.ReplaceAll(r.text, "{hosts}", hosts(r.on))
		}
		out = append(out, r.text)
		if e.firstOnly() {
			break
		}
	}
	return strings.Join(out, "; ")
}

// AnyHosts describes hosts by their roles. Pass it to Says if there is no cluster.
func AnyHosts(roles []string) string {
	switch {
	case len(roles) == 0:
		return "each host"
	case slices.Contains(roles, RoleWorker):
		return "each node"
	case slices.Contains(roles, RoleLoadBalancer):
		return "masters and load balancers"
	case slices.Contains(roles, RoleEtcd):
		return "each member"
	case slices.Contains(roles, RoleRegistry):
		return "its host"
	}
	return "each master"
}

// EffectOf returns the effect of the field at a path of the config, and what install does
// with a change. ok is false for a field that has no effect yet.
func EffectOf(path string) (e Effect, i Install, ok bool) {
	f, found := ConfigFields().Find(path)
	return f.Effect, f.Install, found && f.Effect != "" && acted(path)
}

// acted reports whether the field at a path, or a field below it, has an effect today.
func acted(path string) bool {
	return slices.ContainsFunc(SupportedFields(), func(u string) bool {
		return u == path || strings.HasPrefix(u, path+".") || strings.HasPrefix(path, u+".")
	})
}
