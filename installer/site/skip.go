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

// skipChecks removes checks from the plan: those that the user skips, and those that require a
// bundle if there is none.
func (s *Site) skipChecks() error {
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
			s.Unchecked = append(s.Unchecked, steps.Finding{Check: name, What: "not checked without a bundle", Advice: "specify the bundle with --bundle", Note: true})
		}
	}
	return nil
}

// checksNamed returns the full names of the checks that the user skips, sorted.
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

// noCheck explains why a check cannot be skipped.
func noCheck(word string, known []string) error {
	short := preflight.ShortName(word)
	switch short {
	case preflight.ShortName(preflight.Connectivity), preflight.ShortName(preflight.Sudo):
		return &refusal.Error{Err: fmt.Errorf("check %s cannot be skipped", word), Kind: refusal.Usage, Advice: "all other checks depend on it"}
	case preflight.ShortName(state.Check):
		return &refusal.Error{Err: fmt.Errorf("check %s cannot be skipped", word), Kind: refusal.Usage, Advice: "it protects an existing cluster; follow the advice of each finding"}
	}
	var words []string
	for _, n := range known {
		words = append(words, preflight.ShortName(n))
	}
	slices.Sort(words)
	return &refusal.Error{Err: fmt.Errorf("there is no check %s%s", word, refusal.DidYouMean(short, words)), Kind: refusal.Usage, Advice: "choose among " + strings.Join(words, ", ")}
}

// needBundle returns the checks that require a bundle.
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

// setAway sets the skipped hosts of a pipeline that keeps a cluster. All of them must be
// hosts of the config.
func (s *Site) setAway() error {
	if len(s.SkipHosts) == 0 || !s.Pipeline.WritesRecord {
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

// notSkipped wraps the error of a host that cannot be skipped; nil for other errors. needed is
// the kind of the error for a host that is required.
func notSkipped(err error, needed refusal.Kind) error {
	var unknown *state.UnknownHostError
	var skip *state.SkipError
	switch {
	case errors.As(err, &unknown):
		return &refusal.Error{Err: fmt.Errorf("--skip-host %s: %w%s", unknown.Name, err, refusal.DidYouMean(unknown.Name, unknown.Known)), Kind: refusal.Usage, Advice: "use a host name of spec.hosts"}
	case errors.As(err, &skip):
		return &refusal.Error{Err: fmt.Errorf("--skip-host: %w", err), Kind: needed, Advice: skip.Advice()}
	}
	return nil
}

// RemainingOnHosts returns what remains on the hosts that a deletion skipped.
func (s *Site) RemainingOnHosts() []steps.Finding {
	var out []steps.Finding
	for _, name := range s.Deletion.Skip {
		out = append(out, steps.Finding{Host: name, Check: "passed-over", Warning: true,
			What:   "was skipped and still has " + strings.Join(state.Stays(s.Deletion.Whole, name), "; "),
			Advice: "when the host answers, run this command again without --skip-host; an install cleans it first, too. Until then keep the host off the network, or destroy its disk"})
	}
	return out
}

// NotApplied returns what an installation did not do on the hosts that it skipped.
func (s *Site) NotApplied() []steps.Finding {
	var out []steps.Finding
	for _, name := range s.Away {
		x := steps.Finding{Host: name, Check: "passed-over", Warning: true,
			What:   "was skipped: " + strings.Join(state.Undone(s.Cluster, s.Exists, name), "; "),
			Advice: "when the host answers, run this command again without --skip-host"}
		if cp := s.Cluster.Spec.ControlPlaneEndpoint; s.Cluster.Spec.RoleGroups.Names(manifest.RoleMaster)[0] == name && cp.Address == "" && !cp.ExternalDNS {
			x.Advice += ". Until then kube-proxy on workers tries to reach " + name + ". To restart it: kubectl -n kube-system delete pod -l k8s-app=kube-proxy"
		}
		out = append(out, x)
	}
	return out
}
