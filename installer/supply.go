package installer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/mensylisir/kubexm/installer/state"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/registry"
	"github.com/mensylisir/kubexm/steps/registryd"
)

// surveyors is how many questions are put to a registry at once.
const surveyors = 8

// Supply makes the layers of a delta that no archive here holds readable from the
// site's registry. Where some are not there either it says which artifacts need
// them, a *bundle.LackError; nothing is changed on any host.
func (s *Session) Supply(ctx context.Context) error {
	if n, _ := s.Bundle.Absent(); n == 0 {
		return nil
	}
	if err := s.Bundle.LacksFiles(); err != nil {
		return err
	}
	t, err := s.registry()
	if err != nil {
		return errors.Join(s.Bundle.Whole(), err)
	}
	wanted, others, err := s.wanted()
	if err != nil {
		return err
	}
	home, err := registry.Find(ctx, t, wanted, others, surveyors)
	if err != nil {
		return errors.Join(s.Bundle.Whole(), fmt.Errorf("look into the registry of the site: %w", err))
	}
	has := map[string]bool{}
	for d, repository := range home {
		has[d] = true
		s.home[d] = repository
	}
	s.Bundle.Supply("registry "+t.Host, has, func(d string) (io.ReadCloser, error) {
		return registry.Open(ctx, t, home[d], d)
	})
	return s.Bundle.Whole()
}

// registry is the site's, as this session reaches it: through the host that has
// it, or, where it stands already, with a master to go through.
func (s *Session) registry() (registry.Target, error) {
	role := manifest.RoleRegistry
	if registryd.Stands(s.Cluster) {
		role = manifest.RoleMaster
	} else if err := (registryd.Access{Dir: s.Workdir.Certs("registry")}).Made(); err != nil {
		return registry.Target{}, err // and no host has to answer to know that
	}
	hosts := s.Cluster.HostsWith(role)
	if len(hosts) == 0 {
		return registry.Target{}, registryd.ErrNone
	}
	for _, h := range hosts {
		if host := s.Host(h); host != nil {
			return registryd.Reach(s.Cluster, host)
		}
	}
	return registry.Target{}, fmt.Errorf("host %s, through which the registry is reached, is not reached", hosts[0].Name)
}

// wanted gives the blobs that nobody here holds with the images that they belong
// to, and all other images that the registry may know.
func (s *Session) wanted() (wanted map[string][]string, others []string, err error) {
	wanted = map[string][]string{}
	for _, x := range s.Bundle.AbsentBlobs() {
		wanted[x.Digest] = nil
	}
	for _, im := range s.Bundle.Lock.Images {
		tree, err := s.Bundle.Tree(im)
		if err != nil {
			return nil, nil, err
		}
		for _, d := range tree {
			if refs, ok := wanted[d.Digest.String()]; ok {
				wanted[d.Digest.String()] = append(refs, im.Reference)
			}
		}
		others = append(others, im.Reference)
	}
	for _, im := range appliedImages(s.Workdir) {
		others = append(others, im.Reference)
	}
	slices.Sort(others)
	return wanted, slices.Compact(others), nil
}

// appliedImages are those of the lock that the cluster was last made from; none
// where there is no such record.
func appliedImages(w Workdir) []manifest.ImagePin {
	l, _, err := state.LockHere(w.Dir)
	if err != nil || l == nil {
		return nil
	}
	return l.Images
}
