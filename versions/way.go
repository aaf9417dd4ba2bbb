package versions

import (
	"fmt"
	"slices"

	"github.com/Masterminds/semver/v3"

	"github.com/mensylisir/kubexm/manifest"
)

// Way is how a cluster gets from one set of a lock to another: minor release by minor
// release. An API server may be one minor ahead of the others and no more
// (https://kubernetes.io/releases/version-skew-policy).
type Way struct {
	From, To string // sets
	Hops     []Hop
}

// Hop is one step of a Way.
type Hop struct {
	Set string // that the control plane gets
	// Nodes says that kubelets get it, too. They may be some minors behind the API servers,
	// so that a node is drained as rarely as that allows.
	Nodes bool
}

// NoWayError says why there is no Way through the sets of a lock.
type NoWayError struct{ From, To, Why string }

func (e *NoWayError) Error() string {
	return fmt.Sprintf("no way from Kubernetes %s to %s: %s", e.From, e.To, e.Why)
}

// WayIn gives the way through the sets of a lock from one of them to another. It takes the
// newest set of each minor release between.
func WayIn(l *manifest.Lock, from, to string) (Way, error) {
	w := Way{From: from, To: to}
	no := func(format string, args ...any) (Way, error) {
		return Way{}, &NoWayError{From: from, To: to, Why: fmt.Sprintf(format, args...)}
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
		return no("the bundle does not hold %s", to)
	case !begin.LessThan(end):
		return no("it is not newer")
	case begin.Major() != end.Major():
		return no("it is another major release")
	}
	kubelets := begin.Minor()
	for m := min(begin.Minor()+1, end.Minor()); m <= end.Minor(); m++ {
		set := to
		if m < end.Minor() {
			if set = newest(l, end.Major(), m); set == "" {
				return no("the bundle holds no release of v%d.%d: name one in spec.bundle.kubernetesVersions", end.Major(), m)
			}
		}
		hop := Hop{Set: set, Nodes: m == end.Minor() || m+1-kubelets > lag(kubelets)}
		if hop.Nodes {
			kubelets = m
		}
		w.Hops = append(w.Hops, hop)
	}
	return w, nil
}

// lag is how many minors a kubelet may be behind an API server.
func lag(kubelet uint64) uint64 {
	if kubelet < 25 {
		return 2
	}
	return 3
}

// newest is the newest set of a minor release; empty where there is none.
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
