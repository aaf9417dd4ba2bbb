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

// surveyors is the number of concurrent requests to a registry.
const surveyors = 8

// AddRegistrySource makes the layers of a delta that are in no archive on this machine
// readable from the site's registry. If the registry lacks some of them, it returns a
// *bundle.AbsentBlobsError with the artifacts that need them. It changes nothing on any host.
func (s *Session) AddRegistrySource(ctx context.Context) error {
	if n, _ := s.Bundle.Absent(); n == 0 {
		return nil
	}
	if err := s.Bundle.CheckFiles(); err != nil {
		return err
	}
	t, err := s.registry()
	if err != nil {
		return errors.Join(s.Bundle.CheckComplete(), err)
	}
	missing, others, err := s.missing()
	if err != nil {
		return err
	}
	home, err := registry.Find(ctx, t, missing, others, surveyors)
	if err != nil {
		return errors.Join(s.Bundle.CheckComplete(), fmt.Errorf("search the site's registry: %w", err))
	}
	has := map[string]bool{}
	for d, repository := range home {
		has[d] = true
		s.home[d] = repository
	}
	s.Bundle.AddSource("registry "+t.Host, has, func(d string) (io.ReadCloser, error) {
		return registry.Open(ctx, t, home[d], d)
	})
	return s.Bundle.CheckComplete()
}

// registry returns the site's registry as this session reaches it: through its host, or, if it
// is an existing registry, through a master.
func (s *Session) registry() (registry.Target, error) {
	role := manifest.RoleRegistry
	if registryd.UsesExisting(s.Cluster) {
		role = manifest.RoleMaster
	} else if err := (registryd.Access{Dir: s.Workdir.Certs("registry")}).CheckExists(); err != nil {
		return registry.Target{}, err // no host has to answer for that
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
	return registry.Target{}, fmt.Errorf("cannot reach host %s, through which kubexm connects to the registry", hosts[0].Name)
}

// missing returns the blobs that are missing on this machine with the images that they belong
// to, and all other images that the registry may have.
func (s *Session) missing() (missing map[string][]string, others []string, err error) {
	missing = map[string][]string{}
	for _, x := range s.Bundle.AbsentBlobs() {
		missing[x.Digest] = nil
	}
	for _, im := range s.Bundle.Lock.Images {
		tree, err := s.Bundle.Tree(im)
		if err != nil {
			return nil, nil, err
		}
		for _, d := range tree {
			if refs, ok := missing[d.Digest.String()]; ok {
				missing[d.Digest.String()] = append(refs, im.Reference)
			}
		}
		others = append(others, im.Reference)
	}
	for _, im := range appliedImages(s.Workdir) {
		others = append(others, im.Reference)
	}
	slices.Sort(others)
	return missing, slices.Compact(others), nil
}

// appliedImages returns the images of the last applied lock; none without a record.
func appliedImages(w Workdir) []manifest.ImagePin {
	l, _, err := state.LockHere(w.Dir)
	if err != nil || l == nil {
		return nil
	}
	return l.Images
}
