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

// ErrNoRecord reports that no cluster record was found.
var ErrNoRecord = errors.New("the cluster has no record: its installation has not ended, or neither a master that answers nor this workdir has the record")

// OtherBundleError reports that a bundle is not the one that was applied.
type OtherBundleError struct{ Is, Applied string }

func (e *OtherBundleError) Error() string {
	return fmt.Sprintf("the lock of the bundle is %s, but the applied lock is %s", e.Is, e.Applied)
}

// Advice returns what the user can do; see steps.Advice.
func (*OtherBundleError) Advice() string {
	return "specify the bundle that the cluster was last installed with, or none"
}

// ReachRecorded opens a session on a cluster as described by its record; o.Cluster specifies
// how hosts are reached. Without o.Bundle it uses the applied archive if that is still at its
// path on this machine, or else the copy of its lock in the workdir. Hosts that do not answer
// are returned as by Reach.
func ReachRecorded(ctx context.Context, o Options) (*Session, HostErrors, error) {
	config, given := o.Cluster, o.Bundle != nil
	if w, err := NewWorkdir(o.Base, config.Metadata.Name); err == nil && !given {
		o.Bundle = w.usedBundle(ctx, o)
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
		s.unlock = func() { unlock(); _ = kept.Close() } // only read: a close error loses no data
	}
	further, err := s.asRecorded(ctx, config, given)
	if err != nil {
		return nil, nil, errors.Join(err, s.Close())
	}
	var of HostErrors // hosts of the config that are not in the record do not matter
	for _, err := range append(failed, further...) {
		if host, ok := errors.AsType[*HostError](err); ok {
			if _, known := s.Cluster.Host(host.Host); known {
				of = append(of, err)
			}
		}
	}
	return s, of, nil
}

// asRecorded makes the recorded cluster the cluster of the session.
func (s *Session) asRecorded(ctx context.Context, config *manifest.Cluster, given bool) (HostErrors, error) {
	e, applied, err := state.Recorded(ctx, config, s.Workdir.Dir, s.Host)
	if err != nil {
		return nil, fmt.Errorf("cluster record: %w", err)
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
	keys, err := s.copyKeys()
	if err != nil {
		return nil, err
	}
	for _, h := range s.hosts {
		h.Applied, h.Artifacts, h.Workdir = func() steps.Applied { return applied }, has, keys
	}
	if err := Recall(ctx, c.Only(s.Reached()), s.Host); err != nil {
		return nil, err
	}
	return further, s.blockKeys(keys)
}

// noKeys is the reason for a check that requires keys which are not available.
const noKeys = "not checked without keys of the cluster, which are on hosts that do not answer"

// copyKeys copies the cluster's keys in the workdir to a temporary folder for the time of the
// session. A step that finds no keys creates them, and a check must leave nothing behind.
func (s *Session) copyKeys() (string, error) {
	dir, err := os.MkdirTemp(s.Workdir.Dir, ".look-") // readable by this user only
	if err != nil {
		return "", fmt.Errorf("temporary folder for keys: %w", err)
	}
	unlock := s.unlock
	s.unlock = func() { _ = os.RemoveAll(dir); unlock() } // the next check creates its own
	err = os.CopyFS(filepath.Join(dir, "certs"), os.DirFS(s.Workdir.Certs("")))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("copy the keys of the cluster: %w", err)
	}
	digests, err := os.ReadFile(filepath.Join(s.Workdir.Dir, registryd.DigestsFile))
	if err == nil {
		err = durable.WriteFile(filepath.Join(dir, registryd.DigestsFile), digests, 0o600)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("copy the digests of the registry's images: %w", err)
	}
	return dir, nil
}

// blockKeys prevents steps from creating keys for components whose keys are on hosts that do
// not answer: everything derived from new keys would differ.
func (s *Session) blockKeys(dir string) error {
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

// recordedArtifacts returns what is available on this machine of the applied bundle.
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

// usedBundle opens the applied archive if it is still at its path; nil otherwise.
func (w Workdir) usedBundle(ctx context.Context, o Options) *bundle.Bundle {
	var was struct{ Bundle string }
	text, err := os.ReadFile(w.Applied("applied.json"))
	if err != nil || json.Unmarshal(text, &was) != nil || was.Bundle == "" {
		return nil
	}
	kept, err := readUsed(w)
	if err != nil {
		o.Log.WarnContext(ctx, "cannot read the list of used bundles", "err", err)
	}
	for _, k := range kept {
		if k.Root != was.Bundle {
			continue
		}
		// The signature was verified when the bundle was applied; the root proves it is the
		// same.
		b, err := bundle.OpenPartial(ctx, k.Path, bundle.Policy{AllowUnsigned: true}, bundle.Bases{})
		if err == nil && b.Root.Digest.String() == k.Root {
			_ = FindBases(ctx, b, o.Base, o.Cluster.Metadata.Name) // reading an absent blob returns the error
			return b
		}
		if err == nil {
			err = errors.Join(errors.New("it is another bundle now"), b.Close())
		}
		o.Log.WarnContext(ctx, "cannot read the bundle that was applied", "path", k.Path, "err", err)
	}
	return nil
}

// Drift checks the hosts of a session of ReachRecorded.
func (s *Session) Drift(ctx context.Context) ([]Drift, error) {
	g, err := plan.Build(pipeline.Create(), plan.Scope{Want: s.Cluster, Set: s.Set()})
	if err != nil {
		return nil, err
	}
	return Drifts(ctx, g, s.Host, DriftOptions{Parallel: s.Parallel})
}

// Drifts returns the hosts that do not answer as items that could not be checked.
func (e HostErrors) Drifts() []Drift {
	var out []Drift
	for _, err := range e {
		if host, ok := errors.AsType[*HostError](err); ok {
			out = append(out, Drift{Host: host.Host, Kind: "host", Name: "host " + host.Host, NotChecked: host.Err.Error()})
		}
	}
	return out
}
