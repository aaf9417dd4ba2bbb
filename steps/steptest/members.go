package steptest

import (
	"path"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
)

// etcdMember is a member of an etcd that runs as a service.
type etcdMember struct {
	host    string
	added   bool // by member add, and not started yet
	started bool
	learner bool
	behind  int // how often a learner is queried until it has caught up
}

// catchingUp is how often a new learner is queried until it has caught up, and entries how
// many entries of the log that means each time.
const (
	catchingUp = 3
	entries    = 5000
)

// member returns the member of a host, or nil.
func (k *Kube) member(host string) *etcdMember {
	for _, m := range k.roster {
		if m.host == host {
			return m
		}
	}
	return nil
}

// form makes the hosts of the config members of an etcd that does not exist yet.
func (k *Kube) form() {
	begun := k.begun()
	if begun && len(k.roster) > 0 {
		return
	}
	k.roster = nil
	for _, h := range k.cluster.HostsWith(manifest.RoleEtcd) {
		k.roster = append(k.roster, &etcdMember{host: h.Name, started: begun && k.hasLog(h.Name)})
	}
}

// begun reports whether any member has data, or any host of the config that may become one.
func (k *Kube) begun() bool {
	return slices.ContainsFunc(k.roster, func(m *etcdMember) bool { return k.hasLog(m.host) }) ||
		slices.ContainsFunc(k.cluster.HostsWith(manifest.RoleEtcd), func(h manifest.Host) bool { return k.hasLog(h.Name) })
}

// store returns the host that stores the objects: that of the first member.
func (k *Kube) store() *conntest.Sim {
	if k.Outside != nil {
		return k.Outside
	}
	if k.cluster.Spec.Etcd.Type == "kubexm" {
		first := k.cluster.HostsWith(manifest.RoleEtcd)[0].Name
		if len(k.roster) > 0 {
			first = k.roster[0].host
		}
		if s := k.hosts[first]; s != nil {
			return s
		}
	}
	return k.first()
}

// agreed reports whether an etcd that runs as a service has quorum. Learners do not vote.
func (k *Kube) agreed() bool {
	if k.stands || k.cluster.Spec.Etcd.Type != "kubexm" {
		return true
	}
	run, voters := k.quorum()
	return run > voters/2
}

// Quorum returns how many members of an etcd that runs as a service vote, and how many of
// these run.
func (k *Kube) Quorum() (run, voters int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.quorum()
}

func (k *Kube) quorum() (run, voters int) {
	for _, m := range k.members() {
		if k.learns(m) {
			continue
		}
		if voters++; k.runs(m) {
			run++
		}
	}
	return run, voters
}

// Members returns the members of an etcd that runs as a service; a learner is followed by "?".
func (k *Kube) Members() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	out := k.members()
	for i, m := range out {
		if k.learns(m) {
			out[i] += "?"
		}
	}
	return out
}

// members returns the members of an etcd that runs as a service.
func (k *Kube) members() []string {
	k.form()
	var out []string
	for _, m := range k.roster {
		out = append(out, m.host)
	}
	return out
}

// everyMember returns the etcd members, stacked or as services.
func (k *Kube) everyMember() []string {
	if !k.stacked() {
		return k.members()
	}
	var out []string
	for _, m := range k.all("EtcdMember") {
		out = append(out, word(m, "metadata", "name"))
	}
	return out
}

// learns reports whether a member does not vote.
func (k *Kube) learns(host string) bool {
	m := k.member(host)
	return k.Learner == host || m != nil && m.learner
}

// memberAt returns the host with that endpoint, or "".
func (k *Kube) memberAt(endpoint string) string {
	for host := range k.hosts {
		if endpoint == "https://"+k.address(host)+":2379" {
			return host
		}
	}
	return ""
}

// logFile is the file by which a member is known to have data.
func (k *Kube) logFile() string { return k.storeDir() + "/wal/0.wal" }

// hasLog reports whether a host has the data of a member.
func (k *Kube) hasLog(host string) bool {
	s := k.hosts[host]
	if s == nil {
		return false
	}
	_, ok := s.File(k.logFile())
	return ok
}

// runs reports whether the member of a host serves. It creates a log at its first start. A
// member that has lost its log does not start again as the same member, and neither does one
// that was removed. A member that was added starts only with the initial cluster state
// "existing", and with exactly the members of etcd in its initial cluster.
func (k *Kube) runs(host string) bool {
	s := k.hosts[host]
	if s == nil || !s.Unit("etcd.service").Active {
		return false
	}
	k.form()
	m := k.member(host)
	if m == nil || m.started || k.hasLog(host) {
		return m != nil && m.started && k.hasLog(host)
	}
	joins := strings.Contains(s.Read("/etc/etcd/join.env"), "ETCD_INITIAL_CLUSTER_STATE=existing")
	if m.added != joins || !k.knowsAll(s) {
		return false
	}
	m.added, m.started = false, true
	s.AddFile(k.logFile(), "the log of "+host, 0o600)
	return true
}

// knowsAll reports whether the unit of a member lists exactly the members of etcd, by URL.
func (k *Kube) knowsAll(s *conntest.Sim) bool {
	_, after, found := strings.Cut(s.Read("/etc/systemd/system/etcd.service"), "--initial-cluster=")
	if !found {
		return true // a unit without flags, as in tests of one step
	}
	var urls, want []string
	for _, pair := range strings.Split(strings.Fields(after)[0], ",") {
		_, url, _ := strings.Cut(pair, "=")
		urls = append(urls, url)
	}
	for _, m := range k.roster {
		want = append(want, "https://"+k.address(m.host)+":2380")
	}
	slices.Sort(urls)
	slices.Sort(want)
	return slices.Equal(urls, want)
}

// answers reports whether an etcd member answers reads.
func (k *Kube) answers(member string) bool {
	if slices.Contains(k.Unhealthy, "etcd-"+member) {
		return false
	}
	if k.stacked() {
		return k.podRuns(member, "etcd")
	}
	return k.runs(member)
}

// Leader returns the etcd leader, which always answers.
func (k *Kube) Leader() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.leading()
}

func (k *Kube) leading() string {
	may := func(m string) bool { return k.answers(m) && !k.learns(m) }
	all := k.everyMember()
	if slices.Contains(all, k.leader) && may(k.leader) {
		return k.leader
	}
	k.leader = ""
	for _, m := range all {
		if may(m) {
			k.leader = m
			break
		}
	}
	return k.leader
}

// elect elects another leader if the stopped member was the leader, and counts it in
// Elections.
func (k *Kube) elect(stopped string) {
	if k.leading() != stopped || len(k.everyMember()) < 2 {
		return
	}
	k.Elections++
	for _, m := range k.everyMember() {
		if m != stopped && k.answers(m) {
			k.leader = m
			return
		}
	}
}

// leave removes a member. The objects move to the next one, if they are in its data.
func (k *Kube) leave(host string) {
	at := slices.IndexFunc(k.roster, func(m *etcdMember) bool { return m.host == host })
	from := k.store()
	k.roster = slices.Delete(k.roster, at, at+1)
	to := k.store()
	if to == from {
		return
	}
	for _, p := range from.Below(k.storeDir()) {
		f, ok := from.File(p)
		if !ok || f.Mode.IsDir() || path.Dir(p) == path.Dir(k.logFile()) {
			continue
		}
		to.AddFile(p, string(f.Data), f.Mode)
	}
}

// address returns the address of a host as in a URL.
func (k *Kube) address(host string) string {
	for _, h := range k.cluster.Spec.Hosts {
		if h.Name != host {
			continue
		}
		a := k.cluster.NodeAddresses(h)[0]
		if strings.Contains(a, ":") {
			a = "[" + a + "]"
		}
		k.located[host] = a
		return a
	}
	return k.located[host]
}
