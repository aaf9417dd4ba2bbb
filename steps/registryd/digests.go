package registryd

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"time"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/durable"
	"github.com/mensylisir/kubexm/registry"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/op"
)

// DigestsFile says which images a registry that stands already has under another
// digest than upstream's. It is kept in the cluster's folder, for the steps that
// name images; without such images there is none.
const DigestsFile = "registry-digests.json"

// Names gives images their names at the site, with the digests that its registry
// has. It is asked for after the registry was filled.
func Names(c *manifest.Cluster, h *steps.Host) (registry.Mapper, error) {
	m := MapperOf(c)
	if !Stands(c) {
		return m, nil // it takes every index as upstream published it
	}
	text, err := os.ReadFile(filepath.Join(h.Workdir, DigestsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return m, nil
	}
	if err != nil {
		return m, err
	}
	return m, json.Unmarshal(text, &m.Digests)
}

// NamesAt is Names for steps that know no registry.
func NamesAt(c *manifest.Cluster) func(*steps.Host) (registry.Mapper, error) {
	return func(h *steps.Host) (registry.Mapper, error) { return Names(c, h) }
}

// noted tells whether the file says what the registry has.
func noted(c *manifest.Cluster, h *steps.Host, digests map[string]string) (bool, error) {
	m, err := Names(c, h)
	return maps.Equal(m.Digests, digests), err
}

// note writes the file.
func note(h *steps.Host, digests map[string]string) error {
	at := filepath.Join(h.Workdir, DigestsFile)
	if len(digests) == 0 {
		return forgotten(at)
	}
	text, err := json.MarshalIndent(digests, "", "  ")
	if err != nil {
		return err
	}
	return durable.WriteFile(at, append(text, '\n'), 0o600)
}

// ForgetDigests removes the file.
func ForgetDigests() steps.Step {
	return &op.Do{
		M: steps.Meta{Name: "registryd.forget-digests", Timeout: time.Minute},
		Done: func(_ context.Context, h *steps.Host) (bool, error) {
			_, err := os.Stat(filepath.Join(h.Workdir, DigestsFile))
			if errors.Is(err, fs.ErrNotExist) {
				return true, nil
			}
			return false, err
		},
		Act: func(_ context.Context, h *steps.Host) error { return forgotten(filepath.Join(h.Workdir, DigestsFile)) },
	}
}
