package manifest

import (
	"slices"
	"strings"
)

// Effect says what has to be done for a change of a field to take hold in a cluster that
// exists: the value of the struct tag effect. It is one effect or several with commas
// between them, and the first of them may have the others say whose it is:
// "immutable=create,etcd" is a field of etcd that no cluster changes.
type Effect string

// The effects that code asks for by name. All of them are in the table of effects.
const (
	EffectTool      Effect = "tool"
	EffectImmutable Effect = "immutable"
	EffectUpgrade   Effect = "upgrade"
	EffectNodes     Effect = "nodes"
)

// effectRow is one effect.
type effectRow struct {
	effect Effect
	// says completes "the change …"; {hosts} stands for the hosts that it is done on.
	says string
	on   []string // roles of these hosts; none where Change.Item is the host, or all are meant
}

// effectRows is the table of all effects. An argument after = tells one from another in
// what is done, and not in which part it is done to.
func effectRows() []effectRow {
	masters, nodes, members := []string{RoleMaster}, []string{RoleMaster, RoleWorker}, []string{RoleEtcd}
	return []effectRow{
		{"immutable=create", "takes another cluster: this one was made with the old value", masters},
		{"immutable=join", "takes the host out of the cluster and in again: it joined with the old value", nil},
		{"immutable=addon", "takes the add-on away and installs it again", masters},
		{EffectUpgrade, "is another version, and an upgrade", nil},
		{EffectNodes, "takes hosts into the cluster or out of it", nil},
		{EffectTool, "is for kubexm alone: hosts do not know it", nil},
		{"host", "sets up {hosts}, one at a time, pods stay", nil},
		{"runtime", "restarts the container runtime on {hosts}, one at a time, pods stay", nodes},
		{"runtime=files", "rewrites the container runtime's list of registries on {hosts}, nothing restarts", nodes},
		{"kubelet", "restarts the kubelet on {hosts}, one at a time, pods stay", nodes},
		{"kubelet=drain", "drains {hosts} and restarts the kubelet there, one at a time", nodes},
		{"apiserver", "restarts the API server on {hosts}, one at a time", masters},
		{"apiserver=certificate", "signs the API server's certificate on {hosts} anew and restarts the API server there, one at a time", masters},
		{"controller-manager", "restarts the controller manager on {hosts}, one at a time", masters},
		{"scheduler", "restarts the scheduler on {hosts}, one at a time", masters},
		{"etcd", "restarts etcd on {hosts}, one member at a time", members},
		{"proxy", "restarts kube-proxy on {hosts}, one at a time, pods stay", nodes},
		{"network", "restarts the pod network on {hosts}, one at a time, pods stay", nodes},
		{"network=outage", "takes the pod network away and installs another one: pods on {hosts} are cut off until they are made anew", nodes},
		{"dns", "rewrites the config of CoreDNS, which reads it while it runs", masters},
		{"labels", "sets labels and taints of {hosts}", nil},
		{"addons", "applies the add-on anew, or takes it away", masters},
		{"registry", "restarts the registry on {hosts}, nodes pull nothing meanwhile", []string{RoleRegistry}},
		{"lb", "rewrites what leads to the API servers, on {hosts}", append(masters[:1:1], RoleLoadBalancer)},
		{"timers=certs", "rewrites the timer that renews certificates on {hosts}, nothing restarts", masters},
		{"timers=backup", "rewrites the timer that backs etcd up on {hosts}, nothing restarts", members},
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

// rowOf gives the row of one effect.
func rowOf(e Effect) (effectRow, bool) {
	rows := effectRows()
	i := slices.IndexFunc(rows, func(r effectRow) bool { return r.effect == e })
	if i < 0 {
		return effectRow{}, false
	}
	return rows[i], true
}

// Each gives the effects one by one.
func (e Effect) Each() []Effect {
	var out []Effect
	for one := range strings.SplitSeq(string(e), ",") {
		if one != "" {
			out = append(out, Effect(one))
		}
	}
	return out
}

// Is tells whether an effect is among e, whatever its argument.
func (e Effect) Is(one Effect) bool {
	return slices.ContainsFunc(e.Each(), func(x Effect) bool { name, _, _ := strings.Cut(string(x), "="); return name == string(one) })
}

// On gives the roles of the hosts on which something has to be done: none where
// Change.Item is the host, or where every host is meant.
func (e Effect) On() []string {
	all := e.Each()
	if len(all) > 1 && e.decided() {
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

// decided tells whether the first effect says all there is to say, and the others only
// whose it is.
func (e Effect) decided() bool {
	all := e.Each()
	return len(all) > 0 && (all[0].Is(EffectImmutable) || all[0].Is(EffectUpgrade))
}

// Says completes "the change …" in words. hosts names the hosts of some roles, all of
// them for none.
func (e Effect) Says(hosts func(roles []string) string) string {
	var out []string
	for _, one := range e.Each() {
		r, _ := rowOf(one)
		if strings.Contains(r.says, "{hosts}") {
			r.says = strings.ReplaceAll(r.says, "{hosts}", hosts(r.on))
		}
		out = append(out, r.says)
		if e.decided() {
			break
		}
	}
	return strings.Join(out, "; ")
}

// Anywhere names hosts by their roles: for Says, where there is no cluster yet.
func Anywhere(roles []string) string {
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

// EffectOf gives the effect of the field at a path of the config, and what install does
// with it; ok is false for a field that nothing acts on.
func EffectOf(path string) (e Effect, i Install, ok bool) {
	f, found := ConfigFields().Find(path)
	return f.Effect, f.Install, found && f.Effect != "" && acted(path)
}

// acted tells whether something acts on the field at a path, or on one under it.
func acted(path string) bool {
	return slices.ContainsFunc(Used(), func(u string) bool {
		return u == path || strings.HasPrefix(u, path+".") || strings.HasPrefix(path, u+".")
	})
}
