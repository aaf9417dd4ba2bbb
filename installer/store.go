package installer

import (
	"context"
	"errors"

	"github.com/mensylisir/kubexm/installer/state"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/etcd"
)

// StoreReport queries the etcd cluster of c through the first member that answers. of returns a
// host, or nil if it was not reached; unreached has the reasons.
func StoreReport(ctx context.Context, c *manifest.Cluster, of state.Of, unreached HostErrors) (etcd.Report, error) {
	return throughMember(ctx, c, of, unreached, func(h *steps.Host) (etcd.Report, error) { return etcd.ReportOf(ctx, c, h) })
}

// StoreAlarms lists the alarms of the etcd cluster of c in the same way.
func StoreAlarms(ctx context.Context, c *manifest.Cluster, of state.Of, unreached HostErrors) ([]etcd.AlarmReport, error) {
	return throughMember(ctx, c, of, unreached, func(h *steps.Host) ([]etcd.AlarmReport, error) { return etcd.AlarmsOf(ctx, c, h) })
}

// throughMember returns the first answer of a member.
func throughMember[T any](ctx context.Context, c *manifest.Cluster, of state.Of, unreached HostErrors, ask func(*steps.Host) (T, error)) (T, error) {
	var errs []error
	why := unreached.byHost()
	for _, m := range part.StoreOf(c).Members {
		h := of(m)
		if h == nil {
			if e := why[m.Name]; e != nil {
				errs = append(errs, e)
			}
			continue
		}
		answer, err := ask(h)
		if err == nil || ctx.Err() != nil {
			return answer, err
		}
		errs = append(errs, &HostError{Host: m.Name, Address: m.Address, Err: err})
	}
	var none T
	return none, steps.Advise(errors.Join(errs...), "start etcd on its hosts: it needs more than half of its members")
}
