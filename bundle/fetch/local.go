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

// localBytes is the maximum size of a local file in a config.
const localBytes = 64 << 20

// Local pins a local file or chart; paths are relative to base. The lock thus changes with
// the file. For a chart's folder with missing dependencies it sets only the chart's own
// part; PinArtifact adds the others.
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

// LocalChart reads a local chart's folder or archive; paths are relative to base.
func LocalChart(base, name string) (*chart.Chart, error) {
	_, c, err := readLocal(base, name, true)
	return c, err
}

// readLocal reads a file; a chart's folder is read as its packed archive.
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
		return nil, nil, fmt.Errorf("%s is a folder; specify one file, or write type: helm for a chart", at)
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

// fetchLocal copies a local file into the cache.
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
