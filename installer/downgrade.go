package installer

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"github.com/mensylisir/kubexm/bundle"
	"github.com/mensylisir/kubexm/installer/state"
	"github.com/mensylisir/kubexm/manifest"
)

// CheckSerial returns a *bundle.TrustError if the record below base shows that the cluster has
// had a newer bundle. An old bundle's signature stays valid, but the bundle brings back
// defects that a newer one fixed.
func CheckSerial(base string, l *manifest.Lock, name string) error {
	was, err := state.SerialHere(filepath.Join(base, ".kubexm", name))
	if err != nil {
		return err
	}
	return notOlder(l, was, "the cluster record on this machine")
}

// serialWait is how long a control plane that was complete once has to answer: its hosts may
// just have booted.
const serialWait = 3 * time.Minute

// CheckSerial does the same check against the cluster, which may have been changed from
// another machine, and keeps the higher serial for the record. A cluster that does not exist
// has no serial. A cluster that does not answer for serialWait is an error too, because an old
// bundle would pass undetected. allow accepts an older bundle and a cluster that does not
// answer.
func (s *Session) CheckSerial(ctx context.Context, allow bool) error {
	here, err := state.SerialHere(s.Workdir.Dir)
	if err != nil {
		return err
	}
	there, err := s.clusterSerial(ctx, allow)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil && !allow {
		return &bundle.TrustError{Code: bundle.TrustSerialUnknown, Detail: "cannot read from the cluster which bundles it has had", Err: err}
	}
	if err != nil {
		s.Log.WarnContext(ctx, "cannot read from the cluster which bundles it has had", "err", err)
	}
	s.highest = max(here, there)
	if allow {
		return nil
	}
	return errors.Join(notOlder(s.Bundle.Lock, here, "the cluster record on this machine"), notOlder(s.Bundle.Lock, there, "the cluster"))
}

// clusterSerial queries the masters one after another until one of a complete control plane
// answers; with once it does not wait for that.
func (s *Session) clusterSerial(ctx context.Context, once bool) (int64, error) {
	for until := time.Now().Add(serialWait); ; {
		serial, err := state.Serial(ctx, s.Cluster, s.Host)
		if err == nil || once || time.Now().After(until) {
			return serial, err
		}
		s.Log.DebugContext(ctx, "the control plane does not answer yet", "err", err)
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-time.After(2 * time.Second):
		}
	}
}

func notOlder(l *manifest.Lock, was int64, who string) error {
	if l.Serial >= was {
		return nil
	}
	return &bundle.TrustError{Code: bundle.TrustSerial, Detail: fmt.Sprintf("its serial is %d, but %s has %d", l.Serial, who, was)}
}

// highestSerial returns the serial that the record stores after this run.
func (s *Session) highestSerial() string {
	return strconv.FormatInt(max(s.highest, s.Bundle.Lock.Serial), 10)
}
