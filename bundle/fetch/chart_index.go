package fetch

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	"go.yaml.in/yaml/v3"

	"github.com/mensylisir/kubexm/manifest"
)

// indexBytes is the maximum size of a repository's index; the largest known has some 20 MB.
const indexBytes = 96 << 20

// chartEntry is one version of a chart in a repository's index.
type chartEntry struct {
	Name    string   `yaml:"name"`
	Version string   `yaml:"version"`
	URLs    []string `yaml:"urls"`
	Digest  string   `yaml:"digest"`
}

// exactly returns the constraint for exactly one version.
func exactly(version string) string { return "=" + strings.TrimPrefix(version, "v") }

// inRepository returns the newest version of a chart in a range that a repository has, with
// its address and published digest.
func (c *Client) inRepository(ctx context.Context, repository, name, versions string) (manifest.ChartPart, error) {
	p := manifest.ChartPart{Name: name}
	want, err := semver.NewConstraint(versions)
	if err != nil {
		return p, fmt.Errorf("version %q: %w", versions, err)
	}
	text, err := c.index(ctx, repository+"/index.yaml")
	if err != nil {
		return p, err
	}
	entries, err := parseIndex(text, name)
	if err != nil {
		return p, fmt.Errorf("%s/index.yaml: %w", repository, err)
	}
	best, err := pick(entries, want)
	if err != nil {
		return p, fmt.Errorf("%s: %w", repository, err)
	}
	base, err := url.Parse(repository + "/")
	if err != nil {
		return p, err
	}
	at, err := base.Parse(best.URLs[0])
	if err != nil {
		return p, fmt.Errorf("%s/index.yaml: %w", repository, err)
	}
	if at.User != nil {
		return p, fmt.Errorf("%s/index.yaml: the address of the archive of %s contains a password, which would go into the bundle; remove it from the index", repository, name)
	}
	p.Version, p.Address = best.Version, at.String()
	if sum := strings.TrimPrefix(best.Digest, "sha256:"); isHexDigest(sum) {
		p.SHA256 = sum
	}
	return p, nil
}

// parseIndex returns the entries of one chart in an index.
func parseIndex(text []byte, name string) ([]chartEntry, error) {
	var index struct {
		Entries map[string]yaml.Node `yaml:"entries"`
	}
	if err := yaml.Unmarshal(text, &index); err != nil {
		return nil, fmt.Errorf("not an index of charts: %w", err)
	}
	n, ok := index.Entries[name]
	if !ok {
		return nil, fmt.Errorf("has no chart %s", name)
	}
	var entries []chartEntry
	if err := n.Decode(&entries); err != nil {
		return nil, fmt.Errorf("not an index of charts: %w", err)
	}
	return entries, nil
}

// pick returns the newest entry in a range. Of two builds of one version it takes the first
// in the index, as Helm does.
func pick(entries []chartEntry, want *semver.Constraints) (chartEntry, error) {
	var best chartEntry
	var newest *semver.Version
	var have []string
	for _, e := range entries {
		v, err := semver.NewVersion(e.Version)
		if err != nil || len(e.URLs) == 0 {
			continue
		}
		have = append(have, e.Version)
		if want.Check(v) && (newest == nil || v.GreaterThan(newest)) {
			best, newest = e, v
		}
	}
	if newest == nil {
		return best, fmt.Errorf("has no version %s of the chart; it has %s", want, strings.Join(slices.Clip(have[:min(len(have), 8)]), ", "))
	}
	return best, nil
}

// index reads a repository's index.
func (c *Client) index(ctx context.Context, address string) ([]byte, error) {
	_, u, plain, err := c.fileAddress(address)
	if err != nil {
		return nil, err
	}
	client, err := c.loggedIn(ctx, u)
	if err != nil {
		return nil, err
	}
	var text []byte
	err = c.retry(allowPlainHTTP(ctx, plain), address, func(ctx context.Context) (int64, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
		if err != nil {
			return 0, err
		}
		resp, err := client.Do(req)
		if err != nil {
			return 0, err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return 0, statusError(resp)
		}
		text, err = io.ReadAll(io.LimitReader(resp.Body, indexBytes+1))
		return 0, err
	})
	if err == nil && len(text) > indexBytes {
		err = fmt.Errorf("%s has more than %d bytes, too many for an index", display(u), indexBytes)
	}
	return text, err
}
