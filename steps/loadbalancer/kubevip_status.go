package loadbalancer

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/kubectl"
	"github.com/mensylisir/kubexm/steps/runner"
)

// KubeVIPStatusOf reads the status of kube-vip on a master. It changes nothing. Network interfaces
// are those of h.Facts. Since is when the master took the lease, as the API server of the same
// master knows it: zero if it is on another master, or if that API server does not answer.
func KubeVIPStatusOf(ctx context.Context, h *steps.Host, c *manifest.Cluster) (Status, error) {
	var s Status
	var err error
	if s.Holds, err = holdsVIP(h, c); err != nil {
		return s, err
	}
	conf, _, err := contentOf(ctx, h, kubeVIPConf)
	if err != nil {
		return s, err
	}
	missing, err := kubeVIPMissing(ctx, h, digestOf(conf))
	if err != nil {
		return s, err
	}
	if missing != "" {
		s.Stopped = []string{"kube-vip"}
	}
	s.Since, err = leaseTakenBy(ctx, h, c)
	return s, err
}

// leaseTakenBy returns when a master took kube-vip's lease; zero if it does not hold it.
func leaseTakenBy(ctx context.Context, h *steps.Host, c *manifest.Cluster) (time.Time, error) {
	own := "https://" + net.JoinHostPort(c.NodeAddresses(h.Host)[0], strconv.Itoa(part.EndpointOf(c).Backend))
	out, err := kubectl.Run(ctx, h, "--request-timeout=5s", "--server="+own, "-n", "kube-system", "get", "--ignore-not-found", "-o", "json", "leases.coordination.k8s.io", kubeVIPLease)
	if runner.Refused(err) || err == nil && out == "" {
		return time.Time{}, nil
	}
	if err != nil {
		return time.Time{}, err
	}
	var lease struct {
		Spec struct {
			Holder   string    `json:"holderIdentity"`
			Acquired time.Time `json:"acquireTime"`
		} `json:"spec"`
	}
	if err := json.Unmarshal([]byte(out), &lease); err != nil {
		return time.Time{}, fmt.Errorf("lease %s: %w", kubeVIPLease, err)
	}
	if lease.Spec.Holder != h.Name {
		return time.Time{}, nil
	}
	return lease.Spec.Acquired.UTC().Truncate(time.Second), nil
}
