package installer

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"slices"
	"time"

	"github.com/mensylisir/kubexm/installer/state"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/controlplane"
	"github.com/mensylisir/kubexm/steps/kubectl"
)

// LeadSelector selects the master through which a run reaches the API of its cluster. It is
// safe for concurrent use.
type LeadSelector struct {
	masters []manifest.Host
	of      state.Of

	busy chan struct{} // full while one call of Lead looks: others wait no longer than their context
	now  *manifest.Host
}

// NewLeadSelector selects among masters, in their order; of returns nil for one that was not
// reached.
func NewLeadSelector(masters []manifest.Host, of state.Of) *LeadSelector {
	return &LeadSelector{masters: masters, of: of, busy: make(chan struct{}, 1)}
}

// serveWait is how long one master has to show that its API server is ready.
const serveWait = 20 * time.Second

// Lead returns the first master whose API server and etcd answer, and keeps returning it for
// as long as they do. If none answers, it returns the previous one, or initially the first one
// that was reached: the cluster may not exist yet, and a step reports errors better than this
// function.
func (w *LeadSelector) Lead(ctx context.Context) (manifest.Host, error) {
	select {
	case w.busy <- struct{}{}:
		defer func() { <-w.busy }()
	case <-ctx.Done():
		return manifest.Host{}, context.Cause(ctx)
	}
	if w.now != nil && w.serves(ctx, *w.now) {
		return *w.now, nil
	}
	for _, m := range w.masters {
		if (w.now == nil || w.now.Name != m.Name) && w.serves(ctx, m) {
			w.now = &m
			return m, nil
		}
	}
	if w.now != nil {
		return *w.now, context.Cause(ctx)
	}
	for _, m := range w.masters {
		if w.of(m) != nil {
			return m, context.Cause(ctx)
		}
	}
	return manifest.Host{}, errors.New("no master of the cluster can be reached")
}

// serves ignores why a master does not serve: the next one is tried.
func (w *LeadSelector) serves(ctx context.Context, m manifest.Host) bool {
	h := w.of(m)
	if h == nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, serveWait)
	defer cancel()
	ok, err := controlplane.APIServerReady(ctx, h)
	if err != nil {
		h.Log.DebugContext(ctx, "cannot determine whether the master serves requests", "err", err)
	}
	return ok && err == nil
}

// NoClusterError reports that none of the reached masters belongs to a cluster.
type NoClusterError struct{ Host string } // the first of them

func (e *NoClusterError) Error() string { return "there is no cluster on " + e.Host }

// ReachLead opens a session for one master of an existing cluster: the first whose API server
// is ready, or else the first that has the administrator's kubeconfig. The master that the
// last operation used is tried first, if this machine knows it. Masters that do not answer are
// skipped and returned; they are the error if no other is left.
func ReachLead(ctx context.Context, o Options) (*Session, *steps.Host, HostErrors, error) {
	s, err := newSession(ctx, o)
	if err != nil {
		return nil, nil, nil, err
	}
	h, failed, err := s.reachLead(ctx, o.Cluster)
	if err != nil {
		return nil, nil, nil, errors.Join(err, s.Close())
	}
	return s, h, failed, nil
}

// ReachRecords is ReachLead for records on the masters of a cluster that may be unfinished or
// may no longer answer: if no API server is ready, the session includes all masters that
// answer. It is not an error if none does.
func ReachRecords(ctx context.Context, o Options) (*Session, HostErrors, error) {
	s, err := newSession(ctx, o)
	if err != nil {
		return nil, nil, err
	}
	_, failed, err := s.reachLead(ctx, o.Cluster)
	var none *NoClusterError
	var hosts HostErrors
	if err != nil && !errors.As(err, &none) && !errors.As(err, &hosts) {
		return nil, nil, errors.Join(err, s.Close())
	}
	return s, failed, nil
}

// ReachOne opens a session for the first of some hosts that answers. If none does, the error
// joins those of all hosts.
func ReachOne(ctx context.Context, o Options, hosts []manifest.Host) (*Session, *steps.Host, error) {
	s, err := newSession(ctx, o)
	if err != nil {
		return nil, nil, err
	}
	var failed HostErrors
	for _, x := range hosts {
		h, err := s.reachHost(ctx, o.Cluster, x, &failed)
		if err != nil {
			return nil, nil, errors.Join(err, s.Close())
		}
		if h != nil {
			return s, h, nil
		}
	}
	return nil, nil, errors.Join(failed, s.Close())
}

// reachHost connects to one host of c. If it does not answer, h is nil and the reason is
// added to failed.
func (s *Session) reachHost(ctx context.Context, c *manifest.Cluster, x manifest.Host, failed *HostErrors) (h *steps.Host, err error) {
	s.Cluster = c.Only([]string{x.Name})
	defer func() { s.Cluster = c }()
	lost, err := s.reachAll(ctx)
	*failed = append(*failed, lost...)
	if h = s.Host(x); h != nil {
		h.Cluster = c
	}
	return h, err
}

// reachLead connects to one master of c after another, and to no more than necessary.
func (s *Session) reachLead(ctx context.Context, c *manifest.Cluster) (*steps.Host, HostErrors, error) {
	var silent *steps.Host // has a cluster, but its API server is not ready
	var bare string
	var failed HostErrors
	masters, err := s.lastLeadFirst(c)
	if err != nil {
		return nil, nil, err
	}
	for _, m := range masters {
		h, err := s.reachHost(ctx, c, m, &failed)
		if err != nil {
			return nil, nil, err
		}
		if h == nil {
			continue
		}
		_, err = h.Stat(ctx, kubectl.AdminConf)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			bare = cmp.Or(bare, m.Name)
		case err != nil:
			failed = append(failed, &HostError{Host: m.Name, Address: m.Address, Err: err})
		case NewLeadSelector(nil, s.Host).serves(ctx, m):
			return h, failed, nil
		case silent == nil:
			silent = h
		}
	}
	switch {
	case silent != nil:
		return silent, failed, nil
	case len(failed) > 0:
		return nil, failed, failed
	case bare != "":
		return nil, nil, &NoClusterError{bare}
	}
	return nil, nil, errors.New("the config has no master")
}

// lastLeadFirst returns the masters of c in their order, but first the one that the last
// operation used, if this machine knows it: a master that was down then may still be down.
func (s *Session) lastLeadFirst(c *manifest.Cluster) ([]manifest.Host, error) {
	masters := slices.Clone(c.HostsWith(manifest.RoleMaster))
	e, err := state.Here(s.Workdir.Dir)
	if err != nil || e == nil {
		return masters, err
	}
	if i := slices.IndexFunc(masters, func(m manifest.Host) bool { return m.Name == e.Lead }); i > 0 {
		lead := masters[i]
		masters = slices.Insert(slices.Delete(masters, i, i+1), 0, lead)
	}
	return masters, nil
}
