package etcd

import (
	"context"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
)

// The roles of a member.
const (
	Leader   = "leader"
	Follower = "follower"
	Learner  = "learner" // does not vote yet
)

// MemberReport is the state of one member.
type MemberReport struct {
	Name    string   `json:"name"`           // its host; for a member of no known host, its name and URLs in etcd
	ID      string   `json:"id"`             // hexadecimal, as etcdctl takes it
	URLs    []string `json:"urls,omitempty"` // for clients; none until it has started
	Role    string   `json:"role,omitempty"` // "" if it does not answer
	Healthy bool     `json:"healthy"`        // it answers, knows a leader, and has no alarm
	Version string   `json:"version,omitempty"`
	Size    int64    `json:"size,omitempty"`   // of its database file, in bytes
	InUse   int64    `json:"inUse,omitempty"`  // bytes of Size that hold data; the rest is freed by defragmenting
	Index   uint64   `json:"index,omitempty"`  // last entry of its log that it has applied
	Errors  []string `json:"errors,omitempty"` // alarms, and why it does not answer
}

// Report is the state of an etcd cluster, as one member sees it.
type Report struct {
	Members []MemberReport `json:"members"`
	Voters  int            `json:"voters"` // members that vote, whether they answer or not
	Healthy int            `json:"healthy"`
	Quorum  int            `json:"quorum"` // voters that must answer
}

// Whole reports whether every member is healthy and votes.
func (r Report) Whole() bool { return r.Healthy == r.Voters && r.Voters == len(r.Members) }

// ReportOf queries the etcd cluster through the member on h. It changes nothing. The error is
// that of the member on h; another one that does not answer is part of the report.
func ReportOf(ctx context.Context, c *manifest.Cluster, h *steps.Host) (Report, error) {
	client := memberOn(c, h)
	members, err := client.Members(ctx, h)
	if err != nil {
		return Report{}, err
	}
	statuses, err := client.answering(ctx, h)
	if err != nil {
		return Report{}, err
	}
	return report(c, members, statuses), nil
}

// report joins the list of members with what each says of itself.
func report(c *manifest.Cluster, members []Member, statuses []Status) Report {
	var out Report
	for _, m := range members {
		r := MemberReport{Name: nameOf(c, m), ID: m.id(), URLs: m.ClientURLs}
		at := slices.IndexFunc(statuses, func(s Status) bool { return s.Status.Header.Member == m.ID })
		switch {
		case len(m.ClientURLs) == 0:
			r.Errors = []string{"it has not started"}
		case at < 0:
			r.Errors = []string{"it does not answer"}
		default:
			r.fill(statuses[at])
		}
		if r.Healthy = len(r.Errors) == 0; !m.IsLearner {
			out.Voters++
			if r.Healthy {
				out.Healthy++
			}
		}
		out.Members = append(out.Members, r)
	}
	out.Quorum = out.Voters/2 + 1
	slices.SortFunc(out.Members, func(a, b MemberReport) int { return strings.Compare(a.Name, b.Name) })
	return out
}

func (r *MemberReport) fill(s Status) {
	r.Version, r.Size, r.InUse, r.Index = s.Status.Version, s.Status.Size, s.Status.InUse, s.Status.Applied
	switch {
	case s.Status.IsLearner:
		r.Role = Learner
	case s.Status.Leader == s.Status.Header.Member:
		r.Role = Leader
	default:
		r.Role = Follower
	}
	for _, e := range s.Status.Errors {
		r.Errors = append(r.Errors, strings.TrimSpace(e))
	}
	if s.Status.Leader == 0 && len(r.Errors) == 0 {
		r.Errors = []string{"it knows no leader"}
	}
}
