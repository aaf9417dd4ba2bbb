package site

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/installer"
	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/installer/state"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/refusal"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/preflight"
)

// leaveOut has the plan leave out the checks that a person names, and those that nothing
// is known for.
func (s *Site) leaveOut() error {
	without := s.Pipeline.Bundle == plan.BundleOptional && s.Bundle == nil
	if len(s.SkipCheck) == 0 && !without {
		return nil
	}
	known, err := installer.ChecksOf(s.Pipeline, s.Cluster)
	if err != nil {
		return err
	}
	if s.Skipped, err = checksNamed(s.SkipCheck, known); err != nil {
		return err
	}
	s.skip = slices.Clone(s.Skipped)
	if !without {
		return nil
	}
	for _, name := range needBundle(s.Cluster) {
		if slices.Contains(known, name) && !slices.Contains(s.skip, name) {
			s.skip = append(s.skip, name)
			s.Unchecked = append(s.Unchecked, steps.Finding{Check: name, What: "not looked at without a bundle", Advice: "name it with --bundle", Note: true})
		}
	}
	return nil
}

// checksNamed gives the full names of the checks that a person left out, sorted.
func checksNamed(words, known []string) ([]string, error) {
	var out []string
	for _, word := range words {
		name := word
		if !slices.Contains(known, name) {
			name = "preflight." + word
		}
		if !slices.Contains(known, name) {
			return nil, noCheck(word, known)
		}
		out = append(out, name)
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// noCheck says why a check cannot be left out.
func noCheck(word string, known []string) error {
	short := preflight.ShortName(word)
	switch short {
	case preflight.ShortName(preflight.Connectivity), preflight.ShortName(preflight.Sudo):
		return &refusal.Error{Err: fmt.Errorf("check %s cannot be left out", word), Kind: refusal.Usage, Advice: "without it nothing else can be looked at"}
	case preflight.ShortName(state.Check):
		return &refusal.Error{Err: fmt.Errorf("check %s cannot be left out", word), Kind: refusal.Usage, Advice: "it keeps a cluster that exists from harm; do what it says of each finding"}
	}
	var words []string
	for _, n := range known {
		words = append(words, preflight.ShortName(n))
	}
	slices.Sort(words)
	return &refusal.Error{Err: fmt.Errorf("there is no check %s%s", word, refusal.DidYouMean(short, words)), Kind: refusal.Usage, Advice: "choose among " + strings.Join(words, ", ")}
}

// needBundle are the checks that cannot be made without a bundle.
func needBundle(c *manifest.Cluster) []string {
	out := []string{"registryd.check-push"}
	for _, x := range preflight.Checks() {
		if x.Bundle && (!x.Packages || len(c.Spec.Bundle.OperatingSystems) > 0) {
			out = append(out, x.Name)
		}
	}
	slices.Sort(out)
	return out
}

// takeAway takes the hosts that a person names for a pipeline that keeps a cluster. All
// of them are hosts of the config.
func (s *Site) takeAway() error {
	if len(s.SkipHosts) == 0 || !s.Pipeline.Keeps {
		return nil
	}
	var known []string
	for _, h := range s.Cluster.Spec.Hosts {
		known = append(known, h.Name)
	}
	for _, name := range s.SkipHosts {
		if !slices.Contains(known, name) {
			return notSkipped(&state.UnknownHostError{Name: name, Known: known}, refusal.Usage)
		}
	}
	s.Away = slices.Compact(slices.Sorted(slices.Values(s.SkipHosts)))
	return nil
}

// notSkipped tells that a host cannot be passed over; nil for an error that says
// something else. needed is whose mistake it is where the host is needed.
func notSkipped(err error, needed refusal.Kind) error {
	var unknown *state.UnknownHostError
	var skip *state.SkipError
	switch {
	case errors.As(err, &unknown):
		return &refusal.Error{Err: fmt.Errorf("--skip-host %s: %w%s", unknown.Name, err, refusal.DidYouMean(unknown.Name, unknown.Known)), Kind: refusal.Usage, Advice: "name a host as spec.hosts does"}
	case errors.As(err, &skip):
		return &refusal.Error{Err: fmt.Errorf("--skip-host: %w", err), Kind: needed, Advice: skip.Advice()}
	}
	return nil
}

// Left says what stays on the hosts that a deletion passed over.
func (s *Site) Left() []steps.Finding {
	var out []steps.Finding
	for _, name := range s.Deletion.Skip {
		out = append(out, steps.Finding{Host: name, Check: "passed-over", Warning: true,
			What:   "was passed over, and keeps " + strings.Join(state.Stays(s.Deletion.Whole, name), "; "),
			Advice: "once it answers: run this command again without --skip-host; install cleans it first, too. Until then keep it off the network, or destroy its disk"})
	}
	return out
}

// Undone says what an installation left undone on the hosts that it went without.
func (s *Site) Undone() []steps.Finding {
	var out []steps.Finding
	for _, name := range s.Away {
		x := steps.Finding{Host: name, Check: "passed-over", Warning: true,
			What:   "was passed over: " + strings.Join(state.Undone(s.Cluster, s.Exists, name), "; "),
			Advice: "once it answers: run this command again without --skip-host"}
		if cp := s.Cluster.Spec.ControlPlaneEndpoint; s.Cluster.Spec.RoleGroups.Names(manifest.RoleMaster)[0] == name && cp.Address == "" && !cp.ExternalDNS {
			x.Advice += ". Until then kube-proxy of workers looks for " + name + ": kubectl -n kube-system delete pod -l k8s-app=kube-proxy"
		}
		out = append(out, x)
	}
	return out
}
