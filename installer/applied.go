package installer

import (
	"fmt"
	"slices"

	"github.com/opencontainers/go-digest"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
)

// applied returns what the cluster and its hosts record about this run.
func (s *Session) applied() steps.Applied {
	s.appliedOnce.Do(func() {
		lock, err := s.Bundle.Document("lock")
		if err != nil {
			lock = nil
		}
		config, err := s.Cluster.Public()
		if err != nil {
			config = s.Bundle.Config
		}
		s.appliedBase = steps.Applied{
			Config: config, Lock: lock, ConfigDigest: digest.FromBytes(config).String(), LockDigest: digest.FromBytes(lock).String(),
			Serial: fmt.Sprint(s.Bundle.Lock.Serial), Root: s.Bundle.Root.Digest.String(), Set: s.Set(),
			Components: s.Bundle.Lock.Components(s.Set()), Digests: digests(s.Bundle.Lock, s.Set()),
		}
	})
	out := s.appliedBase
	out.Highest, out.Bundles, out.Operation, out.Away = s.highestSerial(), s.usedBundles(), s.operation, s.Away
	return out
}

// digests returns the digests of the downloaded files of a set's components, in the form of
// steps.Applied.
func digests(l *manifest.Lock, set string) map[string]string {
	out := map[string]string{}
	for _, a := range l.Artifacts {
		if a.SHA256 != "" && slices.Contains(a.Sets, set) {
			out[a.Name+" "+a.Platform.String()] = "sha256:" + a.SHA256
		}
	}
	return out
}
