package site

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/installer"
	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/installer/state"
	"github.com/mensylisir/kubexm/manifest/refusal"
	"github.com/mensylisir/kubexm/steps"
)

// reachMembership is Reach for a pipeline that changes the hosts of a cluster: the cluster record
// decides what the cluster is. s.Cluster becomes the cluster with all hosts that take part.
func (s *Site) reachMembership(ctx context.Context, o installer.Options) (unreached installer.HostErrors, err error) {
	s.Session, s.Change, unreached, err = installer.ReachMembership(ctx, o, installer.MembershipOptions{
		Kind: s.Pipeline.Membership, Names: s.Targets, Dead: s.Dead, AllowEven: s.AllowEven, MembersOnly: s.Pipeline.TargetHosts != nil,
	})
	if err != nil {
		return nil, notMember(err)
	}
	s.Exists, s.Cluster = s.Change.Exists, s.Change.After
	if s.Pipeline.Membership == plan.RemovesHosts {
		s.Cluster = s.Change.Before
	}
	if s.NothingToDo() {
		return nil, nil
	}
	s.Graph, err = plan.Build(s.Pipeline, s.Scope())
	return unreached, err
}

// NothingToDo reports whether the config has no host that could join the cluster.
func (s *Site) NothingToDo() bool { return s.Change != nil && len(s.Change.Targets) == 0 }

// Unanswering returns the hosts that leave the cluster, if they are all that is unreached.
func (s *Site) Unanswering(unreached installer.HostErrors) []string {
	if s.Change == nil || s.Pipeline.Membership != plan.RemovesHosts {
		return nil
	}
	names := unreached.Names()
	if slices.ContainsFunc(names, func(name string) bool { return !slices.Contains(s.Change.Targets, name) }) {
		return nil
	}
	return names
}

// notMember classifies why hosts cannot join or leave.
func notMember(err error) error {
	var unknown *state.UnknownHostError
	var member *state.MembershipError
	var answers *installer.AnsweringError
	var other *state.OtherClusterError
	switch {
	case errors.As(err, &unknown):
		return &refusal.Error{Err: fmt.Errorf("%w%s", err, refusal.DidYouMean(unknown.Name, unknown.Known)), Kind: refusal.Usage, Advice: "use a name of spec.hosts; `kubexm get nodes` lists those of the cluster"}
	case errors.As(err, &member):
		return &refusal.Error{Err: err, Kind: refusal.Hosts, Advice: member.Advice()}
	case errors.As(err, &answers):
		return &refusal.Error{Err: err, Kind: refusal.Usage, Advice: answers.Advice()}
	case errors.As(err, &other):
		return &refusal.Error{Err: err, Kind: refusal.Hosts, Advice: other.Advice()}
	case errors.Is(err, installer.ErrNoRecord):
		return &refusal.Error{Err: err, Kind: refusal.Hosts, Advice: "run `kubexm install` to its end first"}
	}
	return err
}

// RemainingOnDead returns what remains on hosts that were deleted while they did not answer.
func (s *Site) RemainingOnDead() []steps.Finding {
	var out []steps.Finding
	for _, name := range s.Change.Dead {
		out = append(out, steps.Finding{Host: name, Check: "passed-over", Warning: true,
			What:   "did not answer and still has " + strings.Join(state.Stays(s.Change.Before, name), "; "),
			Advice: "keep the host off the network, or destroy its disk; `kubexm node add` cleans it before it joins again"})
	}
	return out
}

// IgnoredChanges describes the differences between the config and the cluster record that a
// change of hosts does not apply; "" if there are none.
func (s *Site) IgnoredChanges() string {
	if s.Change == nil || len(s.Change.Ignored) == 0 {
		return ""
	}
	var paths []string
	for _, c := range s.Change.Ignored {
		path := c.Path
		if c.Item != "" {
			path += " (" + c.Item + ")"
		}
		paths = append(paths, path)
	}
	return strings.Join(paths, ", ")
}
