package installer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/mensylisir/kubexm/installer/engine"
	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/installer/state"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/cluster"
)

// OperationError reports that an operation of another kind is open.
type OperationError struct{ cluster.Operation }

func (e *OperationError) Error() string {
	how := map[cluster.OperationState]string{
		cluster.OperationWaiting: "waits to be continued", cluster.OperationFailed: "has failed and is still open",
	}[e.State]
	if how == "" {
		how = "is open"
	}
	return fmt.Sprintf("operation %s (%s) %s; %s started it at %s", e.ID, e.Kind, how, e.Who, e.Since.Format(time.RFC3339))
}

// Advice returns what the user can do; see steps.Advice.
func (e *OperationError) Advice() string {
	return "run that command again to continue it, or abandon it: kubexm operation abandon -f CONFIG"
}

// Operation is a recorded change of a cluster, from its first change to its end. It stays on
// record while it is open, so that no other kind of change can start.
type Operation struct {
	is      cluster.Operation
	cluster *manifest.Cluster
	dir     string
	of      state.Of
	began   time.Time // of this run
	away    bool      // it deletes the cluster, and with it any open operation
	open    bool      // it is on record
	begun   bool      // this run has changed something
}

// NewOperation returns the operation for a run of g on the hosts that of returns, with the
// cluster's folder dir: the open one if it is of the same kind, else a new one. Nothing is
// written before Begin. An *OperationError reports an open operation of another kind; a
// deletion ends that operation instead.
func NewOperation(ctx context.Context, g *plan.Graph, c *manifest.Cluster, dir, who string, of state.Of) (*Operation, error) {
	asked, err := skipLeft(dir, of)
	if err != nil {
		return nil, err
	}
	now := time.Now().UTC().Truncate(time.Second)
	o := &Operation{cluster: c, dir: dir, of: asked, began: now, away: g.Deletes, is: cluster.Operation{
		ID: "op-" + now.Format("20060102-150405"), Kind: g.Name, To: c.Spec.Kubernetes.Version, Who: who, Since: now, State: cluster.OperationOpen,
	}}
	var was *manifest.Existing
	if o.away {
		was, err = state.Here(dir) // a cluster to be deleted may no longer answer
	} else {
		was, err = state.Exists(ctx, c, dir, asked)
	}
	if err != nil {
		return nil, err
	}
	if was != nil {
		o.is.From = was.Set
	}
	switch {
	case o.away:
		o.is.To = ""
		return o, nil
	case !g.WritesRecord: // it installs nothing
		o.is.To = o.is.From
	}
	open, err := state.Operation(ctx, c, dir, asked)
	if err != nil {
		return nil, err
	}
	switch {
	case open == nil: // files may be left of one that has ended; one of another kind is replaced
		if open, err = state.OperationInFiles(ctx, c, dir, asked); err != nil {
			return nil, err
		}
	case open.Kind != g.Name:
		return nil, &OperationError{*open}
	}
	if open != nil && open.Kind == g.Name {
		o.is.ID, o.is.From, o.is.Since, o.open = open.ID, open.From, open.Since, true
	}
	config, err := c.Public()
	if err != nil {
		return nil, err
	}
	o.is.Plan, o.is.Config = digest.FromString(g.String()).String(), digest.FromBytes(config).String()
	return o, nil
}

// ID returns the operation's id.
func (o *Operation) ID() string { return o.is.ID }

// Begin records the operation before the first change.
func (o *Operation) Begin(ctx context.Context) error {
	o.open, o.begun = true, true
	if o.away {
		return nil
	}
	if err := o.write(ctx, &o.is); err != nil {
		return fmt.Errorf("record operation %s: %w", o.is.ID, err)
	}
	return nil
}

// write records an operation, or with nil that none is open: on this machine, on every reached
// master, and in the cluster if it has a record. One master is enough.
func (o *Operation) write(ctx context.Context, is *cluster.Operation) error {
	if err := cluster.WriteWorkdirOperation(o.dir, is); err != nil {
		return err
	}
	var failed []error
	written := 0
	for _, h := range o.masters() {
		if err := cluster.WriteOperation(ctx, h, is); err != nil {
			failed = append(failed, fmt.Errorf("host %s: %w", h.Name, err))
			continue
		}
		written++
	}
	if written == 0 {
		return errors.Join(failed...)
	}
	o.onFirstMaster(ctx, "open operation", func(h *steps.Host) error { return cluster.SetOperation(ctx, h, is) })
	return nil
}

// masters returns the masters that were reached.
func (o *Operation) masters() []*steps.Host {
	var out []*steps.Host
	for _, m := range o.cluster.HostsWith(manifest.RoleMaster) {
		if h := o.of(m); h != nil {
			out = append(out, h)
		}
	}
	return out
}

// onFirstMaster calls do on the masters until one succeeds. Complete failure is only logged: the API
// server may not exist yet, or no longer.
func (o *Operation) onFirstMaster(ctx context.Context, what string, do func(*steps.Host) error) {
	for _, h := range o.masters() {
		err := do(h)
		if err == nil {
			return
		}
		h.Log.DebugContext(ctx, "cannot write to the cluster", "what", what, "err", err)
	}
}

// endWait bounds the writes at the end of an interrupted run.
const endWait = time.Minute

// End records how the run ended and adds it to the history; success closes the operation.
// Without a change it does nothing, except that a run which found everything done closes an
// open operation.
func (o *Operation) End(ctx context.Context, failed error, journal string) error {
	if !o.open || failed != nil && !o.begun { // refused before its first change: the record is still correct
		return nil
	}
	ended := cluster.HistoryEntry{Outcome: cluster.OutcomeDone, Journal: journal}
	is := &o.is
	switch {
	case failed == nil:
		is = nil
	case ctx.Err() != nil || errors.Is(failed, engine.ErrStopped):
		ended.Outcome = "interrupted"
	default:
		ended.Outcome, o.is.State = "failed", cluster.OperationFailed
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endWait)
	defer cancel()
	// The history comes first: what was killed in between is still open, and ends once more.
	err := o.add(ctx, ended)
	if !o.away {
		err = errors.Join(err, o.write(ctx, is))
	}
	return err
}

// add adds an entry to the history, on this machine and in the cluster.
func (o *Operation) add(ctx context.Context, e cluster.HistoryEntry) error {
	e.Operation, e.End = o.is, time.Now().UTC().Truncate(time.Second)
	e.Took = time.Since(o.began).Truncate(time.Second).String()
	if e.Outcome == cluster.OutcomeDone || e.Outcome == "abandoned" {
		e.State = ""
	}
	if err := cluster.AddWorkdirHistory(o.dir, e); err != nil {
		return fmt.Errorf("history of operations: %w", err)
	}
	if !o.away {
		o.onFirstMaster(ctx, "history", func(h *steps.Host) error { return cluster.AddHistory(ctx, h, e) })
	}
	return nil
}

// CheckOperation returns an *OperationError if an operation is open that would prevent p from
// starting.
func (s *Session) CheckOperation(ctx context.Context, p plan.Pipeline) error {
	if !p.Operates() || p.Deletes {
		return nil
	}
	asked, err := skipLeft(s.Workdir.Dir, s.Host)
	if err != nil {
		return err
	}
	open, err := state.Operation(ctx, s.Cluster, s.Workdir.Dir, asked)
	if err != nil || open == nil || open.Kind == p.Name {
		return err
	}
	return &OperationError{*open}
}

// operationOf returns the operation of a run; nil if it changes no cluster.
func (s *Session) operationOf(ctx context.Context, g *plan.Graph, o RunOptions) (*Operation, error) {
	if o.DryRun || s.part || !g.Operates() {
		return nil, nil
	}
	is, err := NewOperation(ctx, g, s.Cluster, s.Workdir.Dir, Who(s.LookupEnv), s.Host)
	if err == nil {
		s.operation = is.ID()
	}
	return is, err
}

// Abandon closes the open operation of a cluster without undoing its changes, and returns it;
// nil if none is open.
func (s *Session) Abandon(ctx context.Context) (*cluster.Operation, error) {
	return Abandon(ctx, s.Cluster, s.Workdir.Dir, s.Host)
}

// Abandon is the same for the hosts that of returns, with the cluster's folder dir.
func Abandon(ctx context.Context, c *manifest.Cluster, dir string, of state.Of) (*cluster.Operation, error) {
	asked, err := skipLeft(dir, of)
	if err != nil {
		return nil, err
	}
	open, err := state.Operation(ctx, c, dir, asked)
	if err != nil || open == nil {
		return nil, err
	}
	o := &Operation{is: *open, cluster: c, dir: dir, of: asked, began: time.Now()}
	if err := o.write(ctx, nil); err != nil {
		return nil, fmt.Errorf("abandon operation %s: %w", open.ID, err)
	}
	return open, o.add(ctx, cluster.HistoryEntry{Outcome: "abandoned"})
}

// journalName returns a journal's file name without folder and extension.
func journalName(file string) string {
	return strings.TrimSuffix(file[strings.LastIndexByte(file, '/')+1:], ".jsonl")
}
