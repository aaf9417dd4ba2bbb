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

// CheckSerial refuses a bundle with a *bundle.TrustError where the record below
// base says that the cluster has had a newer one: an old bundle is as well signed
// as it ever was, and brings back what a newer one mended.
func CheckSerial(base string, l *manifest.Lock, name string) error {
	was, err := state.SerialHere(filepath.Join(base, ".kubexm", name))
	if err != nil {
		return err
	}
	return notOlder(l, was, "this machine's record of the cluster")
}

// serialWait is how long a control plane has to answer that was complete once: its
// hosts may just have booted.
const serialWait = 3 * time.Minute

// CheckSerial asks the cluster the same, which another machine may have made, and
// keeps the highest of both for the record. A cluster that does not exist has had
// none; one that does not answer for serialWait is refused too, for an old bundle
// would pass unseen. allow accepts an older bundle and a cluster that does not answer.
func (s *Session) CheckSerial(ctx context.Context, allow bool) error {
	here, err := state.SerialHere(s.Workdir.Dir)
	if err != nil {
		return err
	}
	there, err := s.serialThere(ctx, allow)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil && !allow {
		return &bundle.TrustError{Code: bundle.TrustSerialUnknown, Detail: "the cluster does not tell which bundles it has had", Err: err}
	}
	if err != nil {
		s.Log.WarnContext(ctx, "the cluster does not tell which bundles it has had", "err", err)
	}
	s.highest = max(here, there)
	if allow {
		return nil
	}
	return errors.Join(notOlder(s.Bundle.Lock, here, "this machine's record of the cluster"), notOlder(s.Bundle.Lock, there, "the cluster"))
}

// serialThere asks the masters, one after another, until one of a complete control
// plane answers; once says not to wait for that.
func (s *Session) serialThere(ctx context.Context, once bool) (int64, error) {
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
	return &bundle.TrustError{Code: bundle.TrustSerial, Detail: fmt.Sprintf("its serial is %d, and %s has %d", l.Serial, who, was)}
}

// highestSerial is what the record is to say of this run.
func (s *Session) highestSerial() string {
	return strconv.FormatInt(max(s.highest, s.Bundle.Lock.Serial), 10)
}
