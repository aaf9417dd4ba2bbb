package loadbalancer

import (
	"bytes"
	"context"
	"errors"
	"io/fs"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/op"
)

const keepalivedUnit = "keepalived.service"

// highest is the priority of the first load balancer host; each further one has one less.
// VRRP (RFC 5798) reserves 255 for the owner of the address.
const highest = 200

const keepalivedFile = "/etc/keepalived/keepalived.conf"

// Configured reports whether kubexm has configured keepalived on a host: the virtual IP is
// the cluster's own.
func Configured(ctx context.Context, h *steps.Host) (bool, error) {
	text, err := h.ReadFile(ctx, keepalivedFile)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return bytes.HasPrefix(text, []byte("# Written by kubexm.")), err
}

func keepalivedConfig(c *manifest.Cluster) op.Resource {
	return config{op.Text(keepalivedFile, func(_ context.Context, h *steps.Host) ([]byte, error) {
		v := valuesOf(c)
		var err error
		if v.Interface, err = Interface(c, h); err != nil {
			return nil, err
		}
		place, source, peers := hostOf(c, h.Name)
		v.Host, v.Source, v.Peers, v.Priority = h.Name, source, peers, highest-place
		return render("keepalived.conf", v)
	}), []string{"keepalived", "-t", "-f", Dir + "/keepalived.conf.new"}}
}
