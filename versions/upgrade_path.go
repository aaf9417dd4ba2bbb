package versions

import (
	"fmt"
	"slices"

	"github.com/Masterminds/semver/v3"

	"github.com/mensylisir/kubexm/manifest"
)

// UpgradePath is an upgrade path of a cluster from one set of a lock to another, one minor
// version at a time. API servers may differ by at most one minor version
// (https://kubernetes.io/releases/version-skew-policy).
type UpgradePath struct {
	From, To string // sets
	Steps    []UpgradeStep
}

// UpgradeStep is one step of an UpgradePath.
type UpgradeStep struct {
	Set string // for the control plane
	// Nodes means that the kubelets are upgraded to Set as well. Kubelets may be some minor
	// versions older than the API servers, so that nodes are drained as rarely as possible.
	Nodes bool
}

// NoUpgradePathError is the reason why there is no upgrade path through the sets of a lock.
type NoUpgradePathError struct{ From, To, Why string }

func (e *NoUpgradePathError) Error() string {
	return fmt.Sprintf("no upgrade path from Kubernetes %s to %s: %s", e.From, e.To, e.Why)
}

// FindUpgradePath returns the upgrade path through the sets of a lock from one of them to
// another. It uses the newest set of each minor version between them. An error is a
// *NoUpgradePathError.
func FindUpgradePath(l *manifest.Lock, from, to string) (UpgradePath, error) {
	w := UpgradePath{From: from, To: to}
	no := func(format string, args ...any) (UpgradePath, error) {
		return UpgradePath{}, &NoUpgradePathError{From: from, To: to, Why: fmt.Sprintf(format, args...)}
	}
	begin, err := semver.NewVersion(from)
	if err != nil {
		return no("%v", err)
	}
	end, err := semver.NewVersion(to)
	if err != nil {
		return no("%v", err)
	}
	switch {
	case !slices.ContainsFunc(l.Sets, func(s manifest.Set) bool { return s.Name == to }):
		return no("the bundle does not contain %s", to)
	case !begin.LessThan(end):
		return no("it is not newer")
	case begin.Major() != end.Major():
		return no("it is another major version")
	}
	kubelets := begin.Minor()
	for m := min(begin.Minor()+1, end.Minor()); m <= end.Minor(); m++ {
		set := to
		if m < end.Minor() {
			if set = newest(l, end.Major(), m); set == "" {
				return no("the bundle contains no release of v%d.%d: add one to spec.bundle.kubernetesVersions", end.Major(), m)
			}
		}
		hop := UpgradeStep{Set: set, Nodes: m == end.Minor() || m+1-kubelets > lag(kubelets)}
		if hop.Nodes {
			kubelets = m
		}
		w.Steps = append(w.Steps, hop)
	}
	return w, nil
}

// lag returns the number of minor versions that a kubelet may be older than an API server: 2 for
// a kubelet before 1.25, else 3 (https://kubernetes.io/releases/version-skew-policy).
func lag(kubelet uint64) uint64 {
	if kubelet < 25 {
		return 2
	}
	return 3
}

// newest returns the newest set of a minor version; "" if there is none.
func newest(l *manifest.Lock, major, minor uint64) string {
	var best *semver.Version
	name := ""
	for _, s := range l.Sets {
		v, err := semver.NewVersion(s.Name)
		if err == nil && v.Major() == major && v.Minor() == minor && (best == nil || best.LessThan(v)) {
			best, name = v, s.Name
		}
	}
	return name
}
