package registryd

import (
	"time"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/registry"
	"github.com/mensylisir/kubexm/steps"
)

// Pulling is how nodes speak to the cluster's registry.
type Pulling struct {
	Certs               func(*steps.Host) (registry.Certs, error)
	Login               func(*steps.Host) (user, password string, err error)
	PlainHTTP, Insecure bool
}

// ForNodes gives that: for one of ours, with its own CA and the user who only pulls.
func ForNodes(c *manifest.Cluster) Pulling {
	if Stands(c) {
		a := c.Spec.Registry.PullAuth(c.Spec.Registry.PrivateRegistry)
		return Pulling{
			PlainHTTP: a.PlainHTTP, Insecure: a.SkipTLSVerify,
			Certs: func(*steps.Host) (registry.Certs, error) { return registry.ReadCerts(a.CertsPath) },
			Login: func(h *steps.Host) (string, string, error) {
				p, err := h.Secret(a.Password)
				return a.Username, p, err
			},
		}
	}
	return Pulling{
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
