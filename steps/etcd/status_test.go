package etcd

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/steps/runner"
	"github.com/mensylisir/kubexm/steps/steptest"
)

// statuses is what etcdctl 3.5 prints; its numbers are more than a float holds.
const statuses = `[{"Endpoint":"https://10.99.2.11:2379","Status":{"header":{"cluster_id":17154286426023150272,"member_id":15323391270157805272,"revision":9,"raft_term":2},` +
	`"version":"3.5.16","dbSize":20480,"leader":15323391270157805272,"raftIndex":12,"raftTerm":2,"raftAppliedIndex":12,"errors":["memberID:15323391270157805272 alarm:NOSPACE "],"dbSizeInUse":16384}},` +
	`{"Endpoint":"https://10.99.2.12:2379","Status":{"header":{"member_id":9601333946108405331},"version":"3.5.16","leader":15323391270157805272,"isLearner":true}}]` + "\n"

func TestParseStatuses(t *testing.T) {
	got, err := parseStatuses([]byte(statuses + "warning\n"))
	if err != nil || len(got) != 2 {
		t.Fatalf("%+v, %v", got, err)
	}
	if s := got[0].Status; s.Header.Member != 15323391270157805272 || s.Leader != s.Header.Member || len(s.Errors) != 1 || s.Version != "3.5.16" {
		t.Errorf("%+v", got[0])
	}
	if got[1].Endpoint != "https://10.99.2.12:2379" || !got[1].Status.IsLearner {
		t.Errorf("%+v", got[1])
	}
	for _, bad := range []string{"", "{}", "[]", `[{"Status":{"leader":-1}}]`, "Failed to get the status of endpoint"} {
		if got, err := parseStatuses([]byte(bad)); err == nil {
			t.Errorf("%q: %+v", bad, got)
		}
	}
}

func FuzzParseStatuses(f *testing.F) {
	for _, s := range []string{statuses, "[]", `[{"Status":{"leader":1}}]`, `[{"Status":{"leader":1e99}}]`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if got, err := parseStatuses(text); err == nil && len(got) == 0 {
			t.Error("nobody, and no error")
		}
	})
}

const threeMembers = `apiVersion: kubexm.mensylisir.io/v1alpha1
kind: Cluster
metadata: {name: demo}
spec:
  hosts:
    - {name: m1, address: 192.0.2.11}
    - {name: e1, address: 192.0.2.31}
    - {name: e2, address: 192.0.2.32}
    - {name: e3, address: 192.0.2.33}
  ssh: {user: root, password: secret}
  roleGroups: {master: [m1], etcd: ['e[1:3]']}
  kubernetes: {version: v1.34.10}
  etcd: {type: kubexm}
  network: {plugin: flannel}
`

// TestAbsent: who has not begun, does not vote, or is not there, is named by its host.
func TestAbsent(t *testing.T) {
	c := steptest.Cluster(t, threeMembers)
	got := absent(c, []Member{
		{Name: "e1", PeerURLs: []string{"https://192.0.2.31:2380"}, ClientURLs: []string{"https://192.0.2.31:2379"}},
		{PeerURLs: []string{"https://192.0.2.32:2380"}},
		{Name: "old", PeerURLs: []string{"https://192.0.2.99:2380"}, ClientURLs: []string{"https://192.0.2.99:2379"}, IsLearner: true},
	})
	if want := []string{"etcd has no member e3", "member e2 has not started", "member old https://192.0.2.99:2380 is a learner"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestUnhealthy: of what etcdctl says, every member that does not answer is named.
func TestUnhealthy(t *testing.T) {
	c := steptest.Cluster(t, threeMembers)
	got := unhealthy(c, &runner.CmdError{Stdout: "https://192.0.2.31:2379 is healthy: successfully committed proposal: took = 2ms\n",
		Stderr: "{\"level\":\"warn\"}\nhttps://192.0.2.33:2379 is unhealthy: failed to commit proposal: context deadline exceeded\nError: unhealthy cluster\n"})
	if want := []string{"member e3 is not healthy: failed to commit proposal: context deadline exceeded"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := unhealthy(c, &runner.CmdError{Stderr: "https://192.0.2.31:2379 is unhealthy: failed to commit proposal: Active Alarm(s): NOSPACE \nError: unhealthy cluster\n"}); len(got) > 0 {
		t.Errorf("an alarm, which the status reports: %q", got)
	}
	if got := unhealthy(c, &runner.CmdError{Stderr: "Error: no\n"}); !slices.Equal(got, []string{"not every member is healthy: Error: no"}) {
		t.Errorf("%q", got)
	}
}

// TestReport: what members say of themselves is joined with the list of members.
func TestReport(t *testing.T) {
	c := steptest.Cluster(t, threeMembers)
	member := func(id uint64, host string) Member {
		return Member{ID: id, Name: host, PeerURLs: []string{"https://192.0.2." + host + ":2380"}, ClientURLs: []string{"https://192.0.2." + host + ":2379"}}
	}
	says := func(id, leader uint64, learner bool, errs ...string) (s Status) {
		s.Status.Header.Member, s.Status.Leader, s.Status.IsLearner, s.Status.Errors = id, leader, learner, errs
		s.Status.Version, s.Status.Size, s.Status.InUse, s.Status.Applied = "3.5.16", 20, 10, 5
		return s
	}
	learner := member(4, "34")
	learner.IsLearner = true
	for name, x := range map[string]struct {
		members  []Member
		statuses []Status
		want     string
		whole    bool
	}{
		"three that are well": {[]Member{member(2, "32"), member(1, "31"), member(3, "33")}, []Status{says(1, 2, false), says(2, 2, false), says(3, 2, false)},
			"e1 follower, e2 leader, e3 follower; 3 of 3, needs 2", true},
		"one does not answer": {[]Member{member(1, "31"), member(2, "32"), member(3, "33")}, []Status{says(1, 1, false), says(2, 1, false)},
			"e1 leader, e2 follower, e3  [it does not answer]; 2 of 3, needs 2", false},
		"an alarm, and a stranger that learns": {[]Member{member(1, "31"), learner}, []Status{says(1, 1, false, "memberID:1 alarm:NOSPACE "), says(4, 1, true)},
			"34 https://192.0.2.34:2380 learner, e1 leader [memberID:1 alarm:NOSPACE]; 0 of 1, needs 1", false},
		"no leader": {[]Member{member(1, "31"), {ID: 2, PeerURLs: []string{"https://192.0.2.32:2380"}}}, []Status{says(1, 0, false)},
			"e1 follower [it knows no leader], e2  [it has not started]; 0 of 2, needs 2", false},
	} {
		t.Run(name, func(t *testing.T) {
			r := report(c, x.members, x.statuses)
			var all []string
			for _, m := range r.Members {
				one := m.Name + " " + m.Role
				if len(m.Errors) > 0 {
					one += fmt.Sprint(" ", m.Errors)
				}
				if m.Healthy != (len(m.Errors) == 0) || (m.Role != "") != (m.Version == "3.5.16" && m.Size == 20 && m.InUse == 10 && m.Index == 5) {
					t.Errorf("%+v", m)
				}
				all = append(all, one)
			}
			if got := fmt.Sprintf("%s; %d of %d, needs %d", strings.Join(all, ", "), r.Healthy, r.Voters, r.Quorum); got != x.want || r.Whole() != x.whole {
				t.Errorf("%s, whole %v\nwant %s", got, r.Whole(), x.want)
			}
		})
	}
}
