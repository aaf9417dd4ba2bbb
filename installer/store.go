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
		r, err := etcd.ReportOf(ctx, c, h)
		if err == nil || ctx.Err() != nil {
			return r, err
		}
		errs = append(errs, &HostError{Host: m.Name, Address: m.Address, Err: err})
	}
	return etcd.Report{}, steps.Advise(errors.Join(errs...), "start etcd on its hosts: it needs more than half of its members")
}
