package steptest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/steps/connector"
)

// Errors of etcd 3.5, in the words of its clients.
const (
	notForLearners  = "etcdserver: rpc not supported for learner"
	unhealthyStore  = "etcdserver: unhealthy cluster"
	noSuchMember    = "etcdserver: member not found"
	notStarted      = "etcdserver: re-configuration failed due to not enough started members"
	learnerBehind   = "etcdserver: can only promote a learner member which is in sync with leader"
	noLearner       = "etcdserver: can only promote a learner member"
	tooManyLearners = "etcdserver: too many learner members in cluster"
	urlExists       = "etcdserver: Peer URLs already exists"
)

// The sizes of a database, in bytes, unless Sizes and InUse have others.
const (
	sizeOfStore = 20 << 20
	usedOfStore = 10 << 20
)

func refusedBy(why string) connector.Result { return failed(1, "Error: %s", why) }

// etcdctl simulates etcdctl for an etcd that runs as a service.
func (k *Kube) etcdctl(c call) connector.Result {
	endpoint := c.flags["--endpoints"]
	at := k.memberAt(endpoint)
	_, whole := c.flags["--cluster"]
	local := len(c.words) > 1 && c.words[1] == "status" && !whole // needs no quorum, and learners answer it
	switch {
	case c.sim.Read(c.flags["--cacert"]) == "" || c.sim.Read(c.flags["--cert"]) == "" || c.sim.Read(c.flags["--key"]) == "":
		return failed(1, "Error: open %s: no such file or directory", c.flags["--cert"])
	case at == "" || !k.answers(at) || !local && !k.agreed():
		return failed(1, "%s is unhealthy: failed to commit proposal: context deadline exceeded\nError: unhealthy cluster", endpoint)
	case k.member(at) != nil && k.member(at).learner && !local:
		if c.words[0] == "endpoint" && !whole {
			return failed(1, "%s is unhealthy: failed to commit proposal: %s\nError: unhealthy cluster", endpoint, notForLearners)
		}
		return refusedBy(notForLearners)
	}
	if r, ok := k.askedStore(at, c.words, c.flags); ok {
		return r
	}
	switch strings.Join(c.words[:min(2, len(c.words))], " ") {
	case "endpoint health":
		return prints("%s is healthy: successfully committed proposal: took = 1ms\n", endpoint)
	case "member list":
		var rows []string
		for _, m := range k.roster {
			urls := fmt.Sprintf(`"clientURLs":["https://%s:2379"],"name":%q,`, k.address(m.host), m.host)
			if !k.runs(m.host) && !m.started {
				urls = ""
			}
			rows = append(rows, fmt.Sprintf(`{"ID":%d,%s%s"peerURLs":["https://%s:2380"]}`, MemberNumber(m.host), urls, k.learnerField(m.host), k.address(m.host)))
		}
		return prints(`{"header":{"cluster_id":1},"members":[%s]}`+"\n", strings.Join(rows, ","))
	case "member remove":
		return k.memberRemove(at, c.words[2])
	case "member add":
		_, learner := c.flags["--learner"]
		return k.memberAdd(at, c.words[2], c.flags["--peer-urls"], learner)
	case "member promote":
		return k.memberPromote(at, c.words[2])
	}
	return failed(1, "kube: nobody taught me etcdctl %s", strings.Join(c.words, " "))
}

// byID returns a member by its ID in etcdctl's notation, or nil.
func (k *Kube) byID(id string) *etcdMember {
	for _, m := range k.roster {
		if memberID(m.host) == id {
			return m
		}
	}
	return nil
}

// memberRemove removes a member, as etcd does with its strict check: it protects the quorum.
func (k *Kube) memberRemove(at, id string) connector.Result {
	m := k.byID(id)
	if m == nil {
		return refusedBy(noSuchMember)
	}
	if !m.learner {
		run, voters := k.quorum()
		started := 0
		for _, x := range k.roster {
			if x != m && !x.learner && x.started {
				started++
			}
		}
		switch {
		case voters == 1 || started < (voters-1)/2+1:
			return refusedBy(notStarted)
		case k.runs(m.host) && run-1 < 1+(voters-1)/2:
			return refusedBy(unhealthyStore)
		}
	}
	if k.unsettled("remove "+m.host, at) {
		return refusedBy(unhealthyStore)
	}
	k.leave(m.host)
	return prints("Member %s removed from cluster\n", id)
}

// memberAdd adds a learner, if all members run and none is a learner yet.
func (k *Kube) memberAdd(at, name, url string, learner bool) connector.Result {
	host := k.memberAt(strings.Replace(url, ":2380", ":2379", 1))
	switch {
	case host == "" || k.member(host) != nil:
		return refusedBy(urlExists)
	case !learner:
		return failed(1, "kube: kubexm adds members as learners only")
	case slices.ContainsFunc(k.roster, func(m *etcdMember) bool { return m.learner }):
		return refusedBy(tooManyLearners)
	case slices.ContainsFunc(k.roster, func(m *etcdMember) bool { return !k.answers(m.host) }) || k.unsettled("add "+name, at):
		return refusedBy(unhealthyStore)
	}
	k.index += 2 * catchingUp * entries
	k.roster = append(k.roster, &etcdMember{host: host, added: true, learner: true, behind: catchingUp})
	return prints("Member %s added to cluster\n", memberID(host))
}

// memberPromote makes a learner vote that has caught up.
func (k *Kube) memberPromote(at, id string) connector.Result {
	m := k.byID(id)
	switch {
	case m == nil:
		return refusedBy(noSuchMember)
	case !m.learner:
		return refusedBy(noLearner)
	case !k.runs(m.host) || m.behind > 0 || k.Stuck == m.host || k.unsettled("promote "+m.host, at):
		return refusedBy(learnerBehind)
	}
	m.learner = false
	return prints("Member %s promoted in cluster\n", id)
}

// unsettled reports whether a member refuses a change of the membership: each member refuses
// each change once. etcd does so until all members have been connected for five seconds.
func (k *Kube) unsettled(change, at string) bool {
	key := change + " at " + at
	if !k.refused[key] {
		k.refused[key] = true
		return true
	}
	maps.DeleteFunc(k.refused, func(was string, _ bool) bool { return strings.HasPrefix(was, change+" at ") })
	return false
}

// askedStore simulates the etcdctl commands that are the same for both kinds of members. at is
// the member that is asked. It returns false for other commands.
func (k *Kube) askedStore(at string, words []string, flags map[string]string) (connector.Result, bool) {
	_, whole := flags["--cluster"]
	switch command := strings.Join(words[:min(2, len(words))], " "); {
	case command == "endpoint health" && whole:
		return k.healthOfAll(), true
	case command == "endpoint status" && whole:
		return k.statusOf(k.everyMember()), true
	case command == "endpoint status":
		return k.statusOf([]string{at}), true
	case words[0] == "defrag":
		k.defragmented(at)
		return prints("Finished defragmenting etcd member[%s]\n", flags["--endpoints"]), true
	case command == "alarm list":
		return prints("%s", k.Alarm+map[bool]string{true: "", false: "\n"}[k.Alarm == ""]), true
	case command == "alarm disarm":
		text := k.Alarm
		k.disarmed()
		return prints("%s", text+map[bool]string{true: "", false: "\n"}[text == ""]), true
	case words[0] == "move-leader":
		return k.moveLeader(flags["--endpoints"], words[1]), true
	}
	return connector.Result{}, false
}

func (k *Kube) healthOfAll() connector.Result {
	var good, bad []string
	unhealthy := func(m, why string) {
		bad = append(bad, fmt.Sprintf("https://%s:2379 is unhealthy: failed to commit proposal: %s", k.address(m), why))
	}
	for _, m := range k.everyMember() {
		own := k.member(m)
		switch {
		case own != nil && !own.started && !k.answers(m): // it has no endpoint yet
		case !k.answers(m):
			unhealthy(m, "context deadline exceeded")
		case k.learns(m):
			unhealthy(m, notForLearners)
		case strings.Contains(k.Alarm, "NOSPACE"):
			unhealthy(m, "Active Alarm(s): NOSPACE ")
		default:
			good = append(good, fmt.Sprintf("https://%s:2379 is healthy: successfully committed proposal: took = 1ms", k.address(m)))
		}
	}
	out := prints("%s\n", strings.Join(good, "\n"))
	if len(bad) > 0 {
		out.Exit, out.Stderr = 1, []byte(strings.Join(bad, "\n")+"\nError: unhealthy cluster\n")
	}
	return out
}

// statusOf returns what members report about themselves.
func (k *Kube) statusOf(members []string) connector.Result {
	var rows []string
	leader := k.leading()
	silent := ""
	for _, m := range members {
		own := k.member(m)
		if own != nil && !own.started && !k.answers(m) {
			continue
		}
		if !k.answers(m) {
			silent += "Failed to get the status of endpoint https://" + k.address(m) + ":2379 (context deadline exceeded)\n"
			continue
		}
		more, index := "", k.index
		if k.learns(m) {
			more += `,"isLearner":true`
		}
		if own != nil && own.learner {
			if k.Stuck != m {
				own.behind = max(own.behind-1, 0)
			}
			index -= uint64(own.behind) * entries //nolint:gosec // a few
		}
		if k.Alarm != "" {
			more += fmt.Sprintf(`,"errors":[%q]`, k.Alarm)
		}
		rows = append(rows, fmt.Sprintf(`{"Endpoint":"https://%s:2379","Status":{"header":{"cluster_id":1,"member_id":%d},"version":"3.5.16","dbSize":%d,"dbSizeInUse":%d,"leader":%d,"raftIndex":%d,"raftTerm":2,"raftAppliedIndex":%d%s}}`,
			k.address(m), MemberNumber(m), k.size(m), k.used(m), MemberNumber(leader), index, index, more))
	}
	out := connector.Result{Stdout: []byte("[" + strings.Join(rows, ",") + "]\n")}
	if silent != "" {
		out.Exit, out.Stderr = 1, []byte(silent)
	}
	return out
}

// used returns the bytes of a member's database that hold data.
func (k *Kube) used(member string) int64 { return cmp.Or(k.InUse[member], usedOfStore) }

// size returns the bytes of a member's database.
func (k *Kube) size(member string) int64 {
	return cmp.Or(k.Sizes[member], sizeOfStore)
}

// defragmented frees what a member's database does not use.
func (k *Kube) defragmented(member string) {
	if k.Sizes == nil {
		k.Sizes = map[string]int64{}
	}
	k.Sizes[member] = k.used(member)
}

// Alarms returns the alarms in etcdctl's words; "" if there are none.
func (k *Kube) Alarms() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.Alarm
}

// disarmed clears the alarms, unless a database still has more bytes than its quota: then etcd
// raises the alarm again.
func (k *Kube) disarmed() {
	for _, m := range k.everyMember() {
		if strings.Contains(k.Alarm, "NOSPACE") && k.size(m) >= k.cluster.Spec.Etcd.QuotaBackendBytes {
			return
		}
	}
	k.Alarm = ""
}

func (k *Kube) moveLeader(endpoint, id string) connector.Result {
	leader := k.leading()
	if endpoint != "https://"+k.address(leader)+":2379" {
		return failed(128, "Error: no leader endpoint given at [%s]", endpoint)
	}
	for _, m := range k.everyMember() {
		if memberID(m) != id {
			continue
		}
		if k.learns(m) || !k.answers(m) {
			return refusedBy("etcdserver: bad leader transferee")
		}
		k.leader = m
		return prints("Leadership transferred from %s to %s\n", memberID(leader), id)
	}
	return refusedBy("etcdserver: bad leader transferee")
}

// learnerField returns the additional JSON of a learner in the list of members.
func (k *Kube) learnerField(member string) string {
	if k.learns(member) {
		return `"isLearner":true,`
	}
	return ""
}

// MemberNumber returns the ID of a host's member, one that a float64 cannot represent, as etcd's.
func MemberNumber(name string) uint64 {
	n := uint64(1) << 63
	for _, r := range name {
		n += uint64(r) //nolint:gosec // a letter
	}
	return n
}

func memberID(name string) string { return fmt.Sprintf("%x", MemberNumber(name)) }
