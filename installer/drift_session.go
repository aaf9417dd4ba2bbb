package installer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/opencontainers/go-digest"

	"github.com/mensylisir/kubexm/bundle"
	"github.com/mensylisir/kubexm/installer/pipeline"
	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/installer/state"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/durable"
	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/registryd"
)

// ErrNoRecord says that nobody knows what was applied to a cluster.
var ErrNoRecord = errors.New("there is no record of what was applied to the cluster: its creation has not ended, or no master and no workdir that knows of it was asked")

// OtherBundleError says that a bundle is not the one that was applied.
type OtherBundleError struct{ Is, Applied string }

func (e *OtherBundleError) Error() string {
	return fmt.Sprintf("the bundle's lock is %s, and the one that was applied is %s", e.Is, e.Applied)
}

// Advice says what to do.
func (*OtherBundleError) Advice() string {
	return "give the bundle that the cluster was last installed with, or none"
}

// ReachRecorded opens a session on a cluster as its record says; o.Cluster says how hosts
// are reached. Without o.Bundle it takes the archive that was applied where that still
// lies here, and else its lock, where the workdir has it. Hosts that do not answer are
// given as Reach gives them.
func ReachRecorded(ctx context.Context, o Options) (*Session, HostErrors, error) {
	config, given := o.Cluster, o.Bundle != nil
	if w, err := NewWorkdir(o.Base, config.Metadata.Name); err == nil && !given {
		o.Bundle = w.keptBundle(ctx, o)
	}
	s, failed, err := Reach(ctx, o)
	if err != nil {
		if o.Bundle != nil && !given {
			err = errors.Join(err, o.Bundle.Close())
		}
		return nil, nil, err
	}
	if kept := o.Bundle; kept != nil && !given {
		unlock := s.unlock
		s.unlock = func() { unlock(); _ = kept.Close() } // it was read only: nothing to lose
	}
	further, err := s.asRecorded(ctx, config, given)
	if err != nil {
		return nil, nil, errors.Join(err, s.Close())
	}
	var of HostErrors // of the record: another host that does not answer is none of it
	for _, err := range append(failed, further...) {
		if host, ok := errors.AsType[*HostError](err); ok {
			if _, known := s.Cluster.Host(host.Host); known {
				of = append(of, err)
			}
		}
	}
	return s, of, nil
}

// asRecorded makes the recorded cluster that of the session.
func (s *Session) asRecorded(ctx context.Context, config *manifest.Cluster, given bool) (HostErrors, error) {
	e, applied, err := state.Recorded(ctx, config, s.Workdir.Dir, s.Host)
	if err != nil {
		return nil, fmt.Errorf("what was applied to the cluster: %w", err)
	}
	if e == nil {
		return nil, ErrNoRecord
	}
	c, err := AsRecorded(config, e)
	if err != nil {
		return nil, err
	}
	further, err := s.widen(ctx, c)
	if err != nil {
		return nil, err
	}
	has, err := s.recordedArtifacts(e, given)
	if err != nil {
		return nil, err
	}
	keys, err := s.keysAside()
	if err != nil {
		return nil, err
	}
	for _, h := range s.hosts {
		h.Applied, h.Artifacts, h.Workdir = func() steps.Applied { return applied }, has, keys
	}
	if err := Recall(ctx, c.Only(s.Reached()), s.Host); err != nil {
		return nil, err
	}
	return further, s.closeKeys(keys)
}

// noKeys says that a look would need keys that nobody has.
const noKeys = "not looked at without keys of the cluster, which lie on hosts that do not answer"

// keysAside copies the keys of the cluster that are in the workdir to a folder beside
// them, for the time of the session: a step that looks for keys makes them where there
// are none, and a look leaves nothing behind.
func (s *Session) keysAside() (string, error) {
	dir, err := os.MkdirTemp(s.Workdir.Dir, ".look-") // nobody else reads it
	if err != nil {
		return "", fmt.Errorf("a place for keys: %w", err)
	}
	unlock := s.unlock
	s.unlock = func() { _ = os.RemoveAll(dir); unlock() } // the next look has another one
	err = os.CopyFS(filepath.Join(dir, "certs"), os.DirFS(s.Workdir.Certs("")))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("the keys of the cluster: %w", err)
	}
	digests, err := os.ReadFile(filepath.Join(s.Workdir.Dir, registryd.DigestsFile))
	if err == nil {
		err = durable.WriteFile(filepath.Join(dir, registryd.DigestsFile), digests, 0o600)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("what the registry calls its images: %w", err)
	}
	return dir, nil
}

// closeKeys keeps steps from making keys of parts that have theirs on hosts which do not
// answer: what is made of them could only differ.
func (s *Session) closeKeys(dir string) error {
	parts := map[string][]manifest.Host{"registry": part.RegistryOf(s.Cluster).Hosts}
	if store := part.StoreOf(s.Cluster); store.Kind == part.Service {
		parts["etcd"] = store.Members
	}
	for name, keepers := range parts {
		at := filepath.Join(dir, "certs", name)
		if _, err := os.Stat(at); len(keepers) == 0 || err == nil {
			continue
		}
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o700), durable.WriteFile(at, nil, 0o600)); err != nil {
			return err
		}
	}
	return nil
}

// recordedArtifacts are what is here of the bundle that was applied.
func (s *Session) recordedArtifacts(e *manifest.Existing, given bool) (steps.Artifacts, error) {
	if s.Bundle != nil {
		lock, err := s.Bundle.Document("lock")
		if err != nil {
			return nil, err
		}
		is := digest.FromBytes(lock).String()
		if is == e.Lock {
			return artifacts{bundle: s.Bundle, set: s.Set(), home: s.home}, nil
		}
		if given {
			return nil, &OtherBundleError{Is: is, Applied: e.Lock}
		}
	}
	text, err := os.ReadFile(s.Workdir.Applied("kubexm.lock"))
	if err != nil || digest.FromBytes(text).String() != e.Lock {
		return WithoutBundle(nil, s.Set()), nil //nolint:nilerr // it is on another machine
	}
	l, problems := manifest.DecodeLock(bytes.NewReader(text))
	return WithoutBundle(l, s.Set()), problems.Err()
}

// keptBundle opens the archive that was applied, where it still lies where it did; nil
// where it does not.
func (w Workdir) keptBundle(ctx context.Context, o Options) *bundle.Bundle {
	var was struct{ Bundle string }
	text, err := os.ReadFile(w.Applied("applied.json"))
	if err != nil || json.Unmarshal(text, &was) != nil || was.Bundle == "" {
		return nil
	}
	kept, err := readKept(w)
	if err != nil {
		o.Log.WarnContext(ctx, "the bundles that were applied are not known", "err", err)
	}
	for _, k := range kept {
		if k.Root != was.Bundle {
			continue
		}
		// Who made it was asked when it was applied, and by its root it is the same.
		b, err := bundle.OpenPart(ctx, k.Path, bundle.Policy{AllowUnsigned: true}, bundle.Bases{})
		if err == nil && b.Root.Digest.String() == k.Root {
			_ = FindBases(ctx, b, o.Base, o.Cluster.Metadata.Name) // what is absent then, says who reads it
			return b
		}
		if err == nil {
			err = errors.Join(errors.New("it is another bundle by now"), b.Close())
		}
		o.Log.WarnContext(ctx, "the bundle that was applied cannot be read", "path", k.Path, "err", err)
	}
	return nil
}

// Drift looks at the hosts of a session of ReachRecorded.
func (s *Session) Drift(ctx context.Context) ([]Drift, error) {
	g, err := plan.Build(pipeline.Create(), plan.Scope{Want: s.Cluster, Set: s.Set()})
	if err != nil {
		return nil, err
	}
	return Drifts(ctx, g, s.Host, DriftOptions{Parallel: s.Parallel})
}

// Drifts are the hosts that do not answer, as things that nobody could look at.
func (e HostErrors) Drifts() []Drift {
	var out []Drift
	for _, err := range e {
		if host, ok := errors.AsType[*HostError](err); ok {
			out = append(out, Drift{Host: host.Host, Kind: "host", Name: "host " + host.Host, Unseen: host.Err.Error()})
		}
	}
	return out
}
