package etcd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/runner"
)

const (
	// catchUpTimeout is how long a learner may take until it has the leader's data.
	catchUpTimeout = 10 * time.Minute
	// maxBehind is how many log entries a learner may be behind the leader when it is promoted.
	// etcd itself requires nine tenths of the leader's log.
	maxBehind = 1000
)

// listMembers writes the members that etcd has now into the unit of a host that joins. etcd
// refuses to join with any other list.
func (m member) listMembers(ctx context.Context, h *steps.Host, others []string) error {
	all, err := ofService(answerTime, others...).Members(ctx, h)
	if err != nil {
		return err
	}
	text, err := serviceUnit(m.cluster, h.Host, m.initialOf(all))
	if err != nil {
		return err
	}
	have, err := h.ReadFile(ctx, unitPath)
	if err != nil || bytes.Equal(have, text) {
		return err
	}
	return h.WriteFile(ctx, unitPath, text, runner.Attr{})
}

// initialOf returns the value of initial-cluster for the members that etcd has: those of the
// config in its order, then the others.
func (m member) initialOf(all []Member) string {
	var out []string
	of := func(x Member, name string) {
		for _, url := range x.PeerURLs {
			out = append(out, name+"="+url)
		}
	}
	for _, h := range part.StoreOf(m.cluster).Members {
		i := slices.IndexFunc(all, func(x Member) bool { return slices.Contains(x.PeerURLs, PeerURL(m.cluster, h)) })
		if i < 0 {
			continue
		}
		of(all[i], h.Name)
		all = slices.Delete(slices.Clone(all), i, i+1)
	}
	for _, x := range all {
		name := x.Name
		if name == "" {
			name = x.id()
		}
		of(x, name)
	}
	return strings.Join(out, ",")
}

// finishJoin waits until a started member has the data of the others, promotes it if it is a
// learner, and waits until all members are healthy. A learner that does not catch up is removed
// again.
func (m member) finishJoin(ctx context.Context, h *steps.Host, others []string) error {
	if len(others) > 0 {
		if err := m.promote(ctx, h, others); err != nil {
			return err
		}
	}
	if err := answers(ctx, m.cluster, h); err != nil {
		return err
	}
	if err := steps.Until(ctx, healthTimeout, time.Second, func(ctx context.Context) error { return health(ctx, m.cluster, h, "--cluster") }); err != nil {
		return steps.Advise(fmt.Errorf("this member has joined, and another one is not healthy: %w", err), "run journalctl -u %s on the other etcd hosts", unit)
	}
	return h.Remove(ctx, joinFile)
}

// errNoMember reports that the members do not list the one that joins.
var errNoMember = errors.New("etcd does not list this member any more")

// promote makes the host's member vote once it has the leader's data. It does nothing for a
// member that votes already.
func (m member) promote(ctx context.Context, h *steps.Host, others []string) error {
	exits := exitWatch{}
	err := steps.Until(ctx, catchUpTimeout, 2*time.Second, func(ctx context.Context) error {
		err := m.promoteInSync(ctx, h, others)
		if err != nil && !waits(err) && ctx.Err() == nil {
			return steps.Permanent(err)
		}
		if err == nil {
			return nil
		}
		if exited := exits.check(ctx, h); exited != nil {
			return steps.Permanent(exited)
		}
		return err
	})
	if err == nil || ctx.Err() != nil || !waits(err) && !errors.Is(err, errExits) && !errors.Is(err, errNoMember) {
		return err
	}
	err = withJournal(ctx, h, fmt.Errorf("the new member did not get the data of the others: %w", err))
	if undo := m.abandon(ctx, h, others); undo != nil {
		return errors.Join(err, fmt.Errorf("remove the learner again: %w", undo))
	}
	return steps.Advise(err, "kubexm has removed it again. Check that the etcd hosts reach each other on port %s, and journalctl -u %s on %s", peerPort, unit, h.Name)
}

// waits reports whether an error may pass while a learner catches up.
func waits(err error) bool { return runner.Refused(err) || errors.Is(err, errBehind) }

// errBehind reports that a learner has not caught up yet.
var errBehind = errors.New("the learner has not caught up yet")

// promoteInSync promotes the learner on h if it has caught up.
func (m member) promoteInSync(ctx context.Context, h *steps.Host, others []string) error {
	client := ofService(answerTime, others...)
	all, err := client.Members(ctx, h)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(all, func(x Member) bool { return slices.Contains(x.PeerURLs, PeerURL(m.cluster, h.Host)) })
	switch {
	case i < 0:
		return errNoMember
	case !all[i].IsLearner:
		return nil
	case len(all[i].ClientURLs) == 0:
		return fmt.Errorf("%w: it has not started", errBehind)
	}
	behind, err := entriesBehind(ctx, h, client, all[i].ID)
	if err != nil {
		return err
	}
	if behind > maxBehind {
		why := fmt.Sprintf("it is %d log entries behind the leader", behind)
		h.ReportWait("etcd member " + h.Name + " gets its data: " + why)
		return fmt.Errorf("%w: %s", errBehind, why)
	}
	h.Log.InfoContext(ctx, "promote the learner", "member", h.Name)
	return change(ctx, h, others, "promote", all[i].id())
}

// entriesBehind returns how many log entries a learner has not applied that the leader has.
func entriesBehind(ctx context.Context, h *steps.Host, client Client, learner uint64) (uint64, error) {
	all, err := client.answering(ctx, h)
	if err != nil {
		return 0, err
	}
	var own, leads *Status
	for i, s := range all {
		if s.Status.Header.Member == learner {
			own = &all[i]
		}
		if s.Status.Header.Member == s.Status.Leader && s.Status.Leader != 0 {
			leads = &all[i]
		}
	}
	switch {
	case leads == nil:
		return 0, fmt.Errorf("%w: etcd has no leader", errBehind)
	case own == nil:
		return 0, fmt.Errorf("%w: it does not answer", errBehind)
	case leads.Status.Index < own.Status.Applied:
		return 0, nil
	}
	return leads.Status.Index - own.Status.Applied, nil
}

// abandon removes a learner that did not catch up, and its data: a later run adds it again.
func (m member) abandon(ctx context.Context, h *steps.Host, others []string) error {
	all, err := ofService(answerTime, others...).Members(ctx, h)
	if err != nil {
		return err
	}
	for _, x := range all {
		if !x.IsLearner || !slices.Contains(x.PeerURLs, PeerURL(m.cluster, h.Host)) {
			continue
		}
		h.Log.InfoContext(ctx, "remove a learner that does not catch up", "member", h.Name)
		if err := change(ctx, h, others, "remove", x.id()); err != nil {
			return err
		}
	}
	if err := h.UnitStop(ctx, unit); err != nil {
		return err
	}
	if err := m.clear(ctx, h); err != nil {
		return err
	}
	return h.Remove(ctx, joinFile)
}
