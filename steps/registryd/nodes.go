package registryd

import (
	"time"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/registry"
	"github.com/mensylisir/kubexm/steps"
)

// PullAccess is the nodes' access to the cluster's registry.
type PullAccess struct {
	Certs               func(*steps.Host) (registry.Certs, error)
	Login               func(*steps.Host) (user, password string, err error)
	PlainHTTP, Insecure bool
}

// ForNodes returns the nodes' access. For a registry that kubexm installs, it is the
// registry's CA and the user PullUser.
func ForNodes(c *manifest.Cluster) PullAccess {
	if UsesExisting(c) {
		a := c.Spec.Registry.PullAuth(c.Spec.Registry.PrivateRegistry)
		return PullAccess{
			PlainHTTP: a.PlainHTTP, Insecure: a.SkipTLSVerify,
			Certs: func(*steps.Host) (registry.Certs, error) { return registry.ReadCerts(a.CertsPath) },
			Login: func(h *steps.Host) (string, string, error) {
				p, err := h.Secret(a.Password)
				return a.Username, p, err
			},
		}
	}
	return PullAccess{
		Certs: func(h *steps.Host) (registry.Certs, error) {
			ca, err := AccessOf(h).CA(time.Now())
			return registry.Certs{CA: ca}, err
		},
		Login: func(h *steps.Host) (string, string, error) {
			p, err := AccessOf(h).Password(PullUser)
			return PullUser, p, err
		},
	}
}
