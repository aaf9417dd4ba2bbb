package installer

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"slices"
	"sync"
	"time"

	"github.com/mensylisir/kubexm/installer/state"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/controlplane"
	"github.com/mensylisir/kubexm/steps/kubectl"
)

// WayIn finds the master through which a run speaks to its cluster. It is safe for
// concurrent use.
type WayIn struct {
	masters []manifest.Host
	of      state.Of

	mu  sync.Mutex
	now *manifest.Host
}

// NewWayIn looks among masters, in their order; of gives nil for one that was not reached.
func NewWayIn(masters []manifest.Host, of state.Of) *WayIn { return &WayIn{masters: masters, of: of} }

// serveWait is how long one master has to say that it serves.
const serveWait = 20 * time.Second

// Lead gives the first master whose API server answers, with the store behind it. It
// stays the same one for as long as it does. Where none answers it is the one of before,
// and at first the first that was reached: there a cluster is made, and a step tells
// what is wrong with it better than this.
func (w *WayIn) Lead(ctx context.Context) (manifest.Host, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
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
	return manifest.Host{}, errors.New("no master of the cluster is reached")
}

// serves passes over why a master does not: the next one is asked.
func (w *WayIn) serves(ctx context.Context, m manifest.Host) bool {
	h := w.of(m)
	if h == nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, serveWait)
	defer cancel()
	ok, err := controlplane.Serves(ctx, h)
	if err != nil {
		h.Log.DebugContext(ctx, "the master is not asked any more whether it serves", "err", err)
	}
	return ok && err == nil
}

// NoClusterError says that none of the masters that were reached belongs to a cluster.
type NoClusterError struct{ Host string } // the first of them

func (e *NoClusterError) Error() string { return "there is no cluster on " + e.Host }

// ReachLead opens a session for one master of a cluster that exists: the first that
// serves, and where none does, the first that has the administrator's kubeconfig. The one
// that the last operation went through is asked first, as far as this machine knows it.
// Masters that do not answer are passed over and given; they are the error where no other
// is left.
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

// ReachRecords is ReachLead for what masters remember of a cluster that may not be
// finished, or may not answer any more: where no master serves, the session is for all
// that answer, and it is no error that none does.
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

// ReachOne opens a session for the first of some hosts that answers. All errors of those
// before it are the error where none does.
func ReachOne(ctx context.Context, o Options, hosts []manifest.Host) (*Session, *steps.Host, error) {
	s, err := newSession(ctx, o)
	if err != nil {
		return nil, nil, err
	}
	var failed HostErrors
	for _, x := range hosts {
		h, err := s.reachAlone(ctx, o.Cluster, x, &failed)
		if err != nil {
			return nil, nil, errors.Join(err, s.Close())
		}
		if h != nil {
			return s, h, nil
		}
	}
	return nil, nil, errors.Join(failed, s.Close())
}

// reachAlone dials one host of c. Why it does not answer is added to failed; h is nil
// then.
func (s *Session) reachAlone(ctx context.Context, c *manifest.Cluster, x manifest.Host, failed *HostErrors) (h *steps.Host, err error) {
	s.Cluster = c.Only([]string{x.Name})
	defer func() { s.Cluster = c }()
	lost, err := s.reachAll(ctx)
	*failed = append(*failed, lost...)
	if h = s.Host(x); h != nil {
		h.Cluster = c
	}
	return h, err
}

// reachLead dials one master of c after the other: who is not needed is not called.
func (s *Session) reachLead(ctx context.Context, c *manifest.Cluster) (*steps.Host, HostErrors, error) {
	var silent *steps.Host // has a cluster, and does not serve
	var bare string
	var failed HostErrors
	masters, err := s.lastLeadFirst(c)
	if err != nil {
		return nil, nil, err
	}
	for _, m := range masters {
		h, err := s.reachAlone(ctx, c, m, &failed)
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
		case NewWayIn(nil, s.Host).serves(ctx, m):
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

// lastLeadFirst gives the masters of c in their order, but first the one that the last
// operation went through, as far as this machine knows it: what was down then may be so
// still.
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
