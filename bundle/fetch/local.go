package fetch

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"

	"github.com/mensylisir/kubexm/bundle/chart"
	"github.com/mensylisir/kubexm/manifest"
)

// localBytes bounds a file that a config names by its path.
const localBytes = 64 << 20

// Local fills in what a file or chart on this machine is now, with paths from
// base. A lock then tells when it changed. A chart's folder that lacks charts it
// depends on has only its own part filled in; the rest is for PinArtifact.
func Local(base string, a manifest.Artifact) (manifest.Artifact, error) {
	content, c, err := readLocal(base, a.Address, a.Kind == manifest.Chart)
	if err != nil {
		return a, err
	}
	sum := hexDigestOf(content)
	if a.SHA256 != "" && a.SHA256 != sum {
		return a, &DigestError{Name: a.ID, Address: a.Address, Want: a.SHA256, Got: sum}
	}
	if c != nil {
		a.Chart = metaOf(c)
		if err := sameVersion(a, c); err != nil {
			return a, err
		}
		if len(c.Missing()) > 0 {
			a.Parts = []manifest.ChartPart{{Name: c.Name, Version: c.Version, Address: a.Address, Size: int64(len(content)), SHA256: sum}}
			return a, nil
		}
	}
	a.SHA256, a.Size, a.Trust = sum, int64(len(content)), manifest.FromConfig
	return a, nil
}

// LocalChart reads a chart's folder or archive on this machine, with paths from base.
func LocalChart(base, name string) (*chart.Chart, error) {
	_, c, err := readLocal(base, name, true)
	return c, err
}

// readLocal reads a file, and a chart's folder as the archive that it makes.
func readLocal(base, name string, wantChart bool) ([]byte, *chart.Chart, error) {
	at := filepath.FromSlash(name)
	if !filepath.IsAbs(at) {
		at = filepath.Join(base, at)
	}
	info, err := os.Stat(at)
	switch {
	case err != nil:
		return nil, nil, err
	case info.IsDir() && !wantChart:
		return nil, nil, fmt.Errorf("%s is a folder; name one file, or write type: helm for a chart", at)
	case info.IsDir():
		c, err := chart.ReadDir(at)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", at, err)
		}
		packed, err := c.Pack()
		return packed, c, err
	case info.Size() > localBytes:
		return nil, nil, fmt.Errorf("%s has more than %d bytes", at, localBytes)
	}
	content, err := os.ReadFile(at)
	if err != nil || !wantChart {
		return content, nil, err
	}
	c, err := readChart(content)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", at, err)
	}
	return content, c, nil
}

func hexDigestOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// fetchLocal brings a file of this machine into the cache.
func (c *Client) fetchLocal(ctx context.Context, a manifest.Artifact) error {
	if c.cache.Has(a.SHA256, a.Size) {
		return nil
	}
	content, _, err := readLocal(c.options.Base, a.Address, false)
	if err != nil {
		return err
	}
	if got := hexDigestOf(content); got != a.SHA256 {
		return &DigestError{Name: a.ID, Address: a.Address, Want: a.SHA256, Got: got}
	}
	return c.cache.Put(ctx, a.SHA256, int64(len(content)), bytes.NewReader(content))
}
