package fetch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/Masterminds/semver/v3"
	"github.com/opencontainers/go-digest"

	"github.com/mensylisir/kubexm/bundle/chart"
	"github.com/mensylisir/kubexm/manifest"
)

// mediaChart is Helm's media type of a chart's archive in a registry.
const mediaChart = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"

// chartBytes is the maximum size of a chart's archive that is read into memory.
const chartBytes = 64 << 20

// pinChart sets the missing fields of a chart: the address and digest from its repository
// or registry, its metadata, and the charts that it depends on and does not contain.
func (c *Client) pinChart(ctx context.Context, a manifest.Artifact) (manifest.Artifact, error) {
	own := manifest.ChartPart{Name: a.Name, Version: a.Version, Address: a.Address, SHA256: a.SHA256, Size: a.Size}
	trust := manifest.FromContent
	if a.Repository != "" {
		found, err := c.inRepository(ctx, a.Repository, a.Name, exactly(a.Version))
		if err != nil {
			return a, err
		}
		if own.Address = found.Address; found.SHA256 != "" {
			own.SHA256, trust = found.SHA256, manifest.FromPublished
		}
	}
	content, own, err := c.chartPart(ctx, own)
	if err != nil {
		return a, err
	}
	read, err := readChart(content)
	if err != nil {
		return a, fmt.Errorf("%s: %w", own.Address, err)
	}
	if err := sameVersion(a, read); err != nil {
		return a, err
	}
	a.Address, a.Chart, a.SHA256, a.Size, a.Trust, a.Parts = own.Address, metaOf(read), own.SHA256, own.Size, trust, nil
	if manifest.Artifact.Local(a) || strings.Contains(a.Address, "@sha256:") {
		a.Trust = manifest.FromConfig
	}
	missing := read.Missing()
	if len(missing) == 0 {
		return a, nil
	}
	own.Name, own.Version = read.Name, read.Version
	a.Parts = []manifest.ChartPart{own}
	for _, d := range missing {
		p, err := c.dependency(ctx, a, d)
		if err != nil {
			return a, fmt.Errorf("chart %s depends on %s %s: %w", read.Name, d.Name, d.Version, err)
		}
		a.Parts = append(a.Parts, p)
	}
	packed, err := c.assemble(ctx, a)
	if err != nil {
		return a, err
	}
	a.SHA256, a.Size, a.Trust = hexDigestOf(packed), int64(len(packed)), manifest.FromContent
	return a, c.cache.Put(ctx, a.SHA256, a.Size, bytes.NewReader(packed))
}

// fetchChart fetches a pinned chart into the cache.
func (c *Client) fetchChart(ctx context.Context, a manifest.Artifact) error {
	if c.cache.Has(a.SHA256, a.Size) {
		return nil
	}
	var content []byte
	var err error
	if len(a.Parts) == 0 {
		part := manifest.ChartPart{Name: a.Name, Address: a.Address, SHA256: a.SHA256, Size: a.Size}
		content, _, err = c.chartPart(ctx, part)
	} else {
		content, err = c.assemble(ctx, a)
	}
	if err != nil {
		return err
	}
	if got := hexDigestOf(content); got != a.SHA256 {
		return &DigestError{Name: a.ID, Address: a.Address, Want: a.SHA256, Got: got}
	}
	return c.cache.Put(ctx, a.SHA256, a.Size, bytes.NewReader(content))
}

// assemble adds the missing dependencies to a chart and returns its archive.
func (c *Client) assemble(ctx context.Context, a manifest.Artifact) ([]byte, error) {
	var complete *chart.Chart
	for i, p := range a.Parts {
		content, _, err := c.chartPart(ctx, p)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.Name, err)
		}
		if i == 0 {
			complete, err = readChart(content)
		} else {
			complete, err = complete.With(content)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.Address, err)
		}
	}
	if left := complete.Missing(); len(left) > 0 {
		return nil, fmt.Errorf("chart %s still lacks %s", complete.Name, left[0].Name)
	}
	return complete.Pack()
}

// chartPart returns the archive of one chart as published. It checks the part's pin, or
// sets it if there is none.
func (c *Client) chartPart(ctx context.Context, p manifest.ChartPart) ([]byte, manifest.ChartPart, error) {
	if rest, oci := strings.CutPrefix(p.Address, "oci://"); oci {
		return c.ociChart(ctx, rest, p)
	}
	if !strings.Contains(p.Address, "://") {
		content, _, err := readLocal(c.options.Base, p.Address, true)
		if err != nil {
			return nil, p, err
		}
		sum := hexDigestOf(content)
		if p.SHA256 != "" && p.SHA256 != sum {
			return nil, p, &DigestError{Name: p.Name, Address: p.Address, Want: p.SHA256, Got: sum}
		}
		p.SHA256, p.Size = sum, int64(len(content))
		return content, p, nil
	}
	a := manifest.Artifact{ID: "chart/" + p.Name, Kind: manifest.Chart, Address: p.Address, SHA256: p.SHA256, Size: p.Size}
	if a.SHA256 == "" || a.Size == 0 {
		var err error
		if a, err = c.pinFile(ctx, a); err != nil {
			return nil, p, err
		}
	}
	p.SHA256, p.Size = a.SHA256, a.Size
	if err := c.fetchFile(ctx, a); err != nil {
		return nil, p, err
	}
	content, err := c.readChartBlob(p)
	return content, p, err
}

func (c *Client) readChartBlob(p manifest.ChartPart) ([]byte, error) {
	if p.Size > chartBytes {
		return nil, fmt.Errorf("%s has %d bytes, too many for a chart", p.Address, p.Size)
	}
	return c.cache.read(p.SHA256, p.Size)
}

// ociChart fetches a chart from a registry: the one layer with Helm's media type.
func (c *Client) ociChart(ctx context.Context, reference string, p manifest.ChartPart) ([]byte, manifest.ChartPart, error) {
	r, err := c.repository(reference)
	if err != nil {
		return nil, p, err
	}
	if p.SHA256 == "" {
		m, err := r.resolve(ctx)
		if err != nil {
			return nil, p, err
		}
		layer := -1
		for i, l := range m.layers {
			if l.MediaType == mediaChart && layer < 0 {
				layer = i
			}
		}
		if layer < 0 {
			return nil, p, fmt.Errorf("oci://%s is not a chart: it has no layer of type %s", reference, mediaChart)
		}
		p.SHA256, p.Size = m.layers[layer].Digest.Encoded(), m.layers[layer].Size
	}
	if p.Size > chartBytes {
		return nil, p, fmt.Errorf("oci://%s has %d bytes, too many for a chart", reference, p.Size)
	}
	d := digest.NewDigestFromEncoded(digest.SHA256, p.SHA256)
	if err := r.blob(ctx, Content{Digest: d.String(), Size: p.Size, MediaType: mediaChart, Role: LayerRole}); err != nil {
		return nil, p, err
	}
	content, err := c.readChartBlob(p)
	return content, p, err
}

// dependency finds a chart that a depends on, and pins it.
func (c *Client) dependency(ctx context.Context, a manifest.Artifact, d chart.Dependency) (manifest.ChartPart, error) {
	p := manifest.ChartPart{Name: d.Name, Version: d.Version}
	switch scheme, rest, _ := strings.Cut(d.Repository, "://"); {
	case hasLogin(d.Repository):
		return p, errors.New("the address of its repository contains a password, which would go into the bundle; run `helm dependency build`")
	case d.Repository == "":
		return p, errors.New("the folder charts does not contain it, and no repository is set for it; run `helm dependency build`")
	case scheme == "file" && a.Local():
		p.Address = localDependency(a.Address, rest)
	case scheme == "oci":
		if _, err := semver.NewVersion(d.Version); err != nil {
			return p, errors.New("kubexm does not search a registry for a range of versions; run `helm dependency build`, or commit Chart.lock")
		}
		p.Address = strings.TrimSuffix(d.Repository, "/") + "/" + d.Name + ":" + strings.ReplaceAll(d.Version, "+", "_")
	case scheme == "https" || scheme == "http":
		found, err := c.inRepository(ctx, strings.TrimSuffix(d.Repository, "/"), d.Name, d.Version)
		if err != nil {
			return p, err
		}
		p.Address, p.SHA256, p.Version = found.Address, found.SHA256, found.Version
	default:
		return p, fmt.Errorf("repository %q cannot be queried; write its https:// or oci:// address, or run `helm dependency build`", d.Repository)
	}
	content, p, err := c.chartPart(ctx, p)
	if err != nil {
		return p, err
	}
	read, err := readChart(content)
	if err != nil {
		return p, fmt.Errorf("%s: %w", p.Address, err)
	}
	want, err := semver.NewConstraint(d.Version)
	if err != nil {
		return p, err
	}
	if v, err := semver.NewVersion(read.Version); err != nil || read.Name != d.Name || !want.Check(v) {
		return p, fmt.Errorf("%s contains %s %s", p.Address, read.Name, read.Version)
	}
	p.Version = read.Version
	return p, nil
}

// localDependency returns the path of a dependency relative to a local chart.
func localDependency(address, rest string) string {
	u := url.URL{Path: address + "/"}
	return strings.TrimSuffix(u.JoinPath(rest).Path, "/")
}

func readChart(content []byte) (*chart.Chart, error) { return chart.Read(bytes.NewReader(content)) }

func metaOf(c *chart.Chart) *manifest.ChartMeta {
	return &manifest.ChartMeta{APIVersion: c.APIVersion, Name: c.Name, Version: c.Version, AppVersion: c.AppVersion, Type: c.Type}
}

// sameVersion returns an error if the chart has another version than the config requires.
func sameVersion(a manifest.Artifact, c *chart.Chart) error {
	want, err := semver.NewVersion(a.Version)
	if err != nil {
		return nil // the config sets none
	}
	if have, err := semver.NewVersion(c.Version); err != nil || !have.Equal(want) {
		return fmt.Errorf("the chart is %s %s, the config requires version %s", c.Name, c.Version, a.Version)
	}
	return nil
}
