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

// OperationError says that an operation of another kind is open.
type OperationError struct{ cluster.Operation }

func (e *OperationError) Error() string {
	how := map[cluster.OperationState]string{
		cluster.OperationWaiting: "waits to be continued", cluster.OperationFailed: "has failed and is open",
	}[e.State]
	if how == "" {
		how = "is open"
	}
	return fmt.Sprintf("%s %s of %s %s since %s", e.Kind, e.ID, e.Who, how, e.Since.Format(time.RFC3339))
}

// Advice says what to do.
func (e *OperationError) Advice() string {
	return "run that command again, or give it up: kubexm operation abandon -f CONFIG"
}

// Operation is what one run does to a cluster, from its first change to its end. It is on
// record while it lasts, so that no other kind of change begins in between.
type Operation struct {
	is      cluster.Operation
	cluster *manifest.Cluster
	dir     string
	of      state.Of
	began   time.Time // of this run
	away    bool      // it takes the cluster away, and with that what is open
	open    bool      // it is on record
	begun   bool      // this run has changed something
}

// NewOperation gives the operation of a run of g on the hosts that of gives, with the
// cluster's folder dir: the one that is open where it is of the same kind, else a new one.
// Nothing is written before Begin. An *OperationError says that one of another kind is
// open; what takes a cluster away ends that.
func NewOperation(ctx context.Context, g *plan.Graph, c *manifest.Cluster, dir, who string, of state.Of) (*Operation, error) {
	asked, err := standing(dir, of)
	if err != nil {
		return nil, err
	}
	now := time.Now().UTC().Truncate(time.Second)
	o := &Operation{cluster: c, dir: dir, of: asked, began: now, away: g.Away, is: cluster.Operation{
		ID: "op-" + now.Format("20060102-150405"), Kind: g.Name, To: c.Spec.Kubernetes.Version, Who: who, Since: now, State: cluster.OperationOpen,
	}}
	var was *manifest.Existing
	if o.away {
		was, err = state.Here(dir) // what it takes away may not answer any more
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
	case !g.Keeps: // it installs nothing
		o.is.To = o.is.From
	}
	open, err := state.Operation(ctx, c, dir, asked)
	if err != nil {
		return nil, err
	}
	if open != nil {
		if open.Kind != g.Name {
			return nil, &OperationError{*open}
		}
		o.is.ID, o.is.From, o.is.Since, o.open = open.ID, open.From, open.Since, true
	}
	config, err := c.Public()
	if err != nil {
		return nil, err
	}
	o.is.Plan, o.is.Config = digest.FromString(g.String()).String(), digest.FromBytes(config).String()
	return o, nil
}

// ID is the operation's.
func (o *Operation) ID() string { return o.is.ID }

// Begin puts the operation on record, before the first change.
func (o *Operation) Begin(ctx context.Context) error {
	o.open, o.begun = true, true
	if o.away {
		return nil
	}
	if err := o.write(ctx, &o.is); err != nil {
		return fmt.Errorf("open operation %s: %w", o.is.ID, err)
	}
	return nil
}

// write puts an operation on record, nil that none is: here, on every master that is
// reached, and in the cluster where it has a record. Of masters one is enough.
func (o *Operation) write(ctx context.Context, is *cluster.Operation) error {
	if err := cluster.WriteOperationHere(o.dir, is); err != nil {
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
	o.through(ctx, "open operation", func(h *steps.Host) error { return cluster.SetOperation(ctx, h, is) })
	return nil
}

// masters are those that are reached.
func (o *Operation) masters() []*steps.Host {
	var out []*steps.Host
	for _, m := range o.cluster.HostsWith(manifest.RoleMaster) {
		if h := o.of(m); h != nil {
			out = append(out, h)
		}
	}
	return out
}

// through does something on the first master on which it ends well. That none does is a
// warning alone: there may be no API server yet, or none any more.
func (o *Operation) through(ctx context.Context, what string, do func(*steps.Host) error) {
	for _, h := range o.masters() {
		err := do(h)
		if err == nil {
			return
		}
		h.Log.DebugContext(ctx, "the cluster does not take it", "what", what, "err", err)
	}
}

// endWait bounds what is written at the end of a run that was broken off.
const endWait = time.Minute

// End writes down how the run ended, and adds it to the history: an operation that ended
// well is open no more. Where nothing was changed it does nothing, unless all was as it should
// be and that ends an operation which is open.
func (o *Operation) End(ctx context.Context, failed error, journal string) error {
	if !o.open || failed != nil && !o.begun { // refused before its first change: what is on record is so still
		return nil
	}
	ended := cluster.Ended{Outcome: "done", Journal: journal}
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
	var err error
	if !o.away {
		err = o.write(ctx, is)
	}
	return errors.Join(err, o.add(ctx, ended))
}

// add adds a line to the history, here and in the cluster.
func (o *Operation) add(ctx context.Context, e cluster.Ended) error {
	e.Operation, e.End = o.is, time.Now().UTC().Truncate(time.Second)
	e.Took = time.Since(o.began).Truncate(time.Second).String()
	if e.Outcome == "done" || e.Outcome == "abandoned" {
		e.State = ""
	}
	if err := cluster.AddHistoryHere(o.dir, e); err != nil {
		return fmt.Errorf("history: %w", err)
	}
	if !o.away {
		o.through(ctx, "history", func(h *steps.Host) error { return cluster.AddHistory(ctx, h, e) })
	}
	return nil
}

// CheckOperation is an *OperationError where an operation of another kind than a
// pipeline's is open, which that would not begin beside.
func (s *Session) CheckOperation(ctx context.Context, p plan.Pipeline) error {
	if !p.Operates() || p.Away {
		return nil
	}
	asked, err := standing(s.Workdir.Dir, s.Host)
	if err != nil {
		return err
	}
	open, err := state.Operation(ctx, s.Cluster, s.Workdir.Dir, asked)
	if err != nil || open == nil || open.Kind == p.Name {
		return err
	}
	return &OperationError{*open}
}

// operationOf gives the operation of a run; nil where it changes no cluster.
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

// Abandon gives up the operation that is open on a cluster, and gives it; nil where none
// is. What it has changed stays as it is.
func (s *Session) Abandon(ctx context.Context) (*cluster.Operation, error) {
	return Abandon(ctx, s.Cluster, s.Workdir.Dir, s.Host)
}

// Abandon is the same for hosts that of gives, with the cluster's folder dir.
func Abandon(ctx context.Context, c *manifest.Cluster, dir string, of state.Of) (*cluster.Operation, error) {
	asked, err := standing(dir, of)
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
	return open, o.add(ctx, cluster.Ended{Outcome: "abandoned"})
}

// journalName is a journal's without its folder and ending.
func journalName(file string) string {
	return strings.TrimSuffix(file[strings.LastIndexByte(file, '/')+1:], ".jsonl")
}
