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

// DigestsFile lists the images that an existing registry has under another digest than
// upstream's. It is in the cluster's folder on the workdir host, for the steps that refer to
// images; it does not exist if there are no such images.
const DigestsFile = "registry-digests.json"

// Names returns the mapping of images to their names and digests in the site's registry.
// Call it after the registry was filled.
func Names(c *manifest.Cluster, h *steps.Host) (registry.Mapper, error) {
	m := MapperOf(c)
	if !UsesExisting(c) {
		return m, nil // kubexm's registry accepts every index as upstream published it
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

// NamesAt returns Names as a function, for steps that do not import this package.
func NamesAt(c *manifest.Cluster) func(*steps.Host) (registry.Mapper, error) {
	return func(h *steps.Host) (registry.Mapper, error) { return Names(c, h) }
}

// noted reports whether the file lists these digests.
func noted(c *manifest.Cluster, h *steps.Host, digests map[string]string) (bool, error) {
	m, err := Names(c, h)
	return maps.Equal(m.Digests, digests), err
}

// note writes the file.
func note(h *steps.Host, digests map[string]string) error {
	at := filepath.Join(h.Workdir, DigestsFile)
	if len(digests) == 0 {
		return removeFile(at)
	}
	text, err := json.MarshalIndent(digests, "", "  ")
	if err != nil {
		return err
	}
	return durable.WriteFile(at, append(text, '\n'), 0o600)
}

// ForgetDigests removes the file registry-digests.json from the cluster's folder on the
// workdir host.
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
		Act: func(_ context.Context, h *steps.Host) error { return removeFile(filepath.Join(h.Workdir, DigestsFile)) },
	}
}
