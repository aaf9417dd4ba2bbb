package fetch

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/manifest"
)

// digestFileBytes is the maximum size of a digest file; the longest known have some hundred
// lines.
const digestFileBytes = 1 << 20

// publishedDigest returns the sha256 that upstream publishes at a.DigestAddress for the
// file at a.Address.
func (c *Client) publishedDigest(ctx context.Context, a manifest.Artifact) (string, error) {
	shown, u, plain, err := c.fileAddress(a.DigestAddress)
	if err != nil {
		return "", err
	}
	var text []byte
	err = c.retry(allowPlainHTTP(ctx, plain), a.ID, func(ctx context.Context) (int64, error) {
		var err error
		text, err = c.readSmall(ctx, u)
		return 0, err
	})
	if err != nil {
		return "", fmt.Errorf("read the published digest: %w", err)
	}
	sum, err := parseDigestFile(text, a.Address)
	if err != nil {
		return "", fmt.Errorf("%s: %w", shown, err)
	}
	c.log.InfoContext(ctx, "using the digest that upstream publishes", "name", a.ID, "address", shown, "sha256", sum)
	return sum, nil
}

// readSmall reads a document of at most digestFileBytes.
func (c *Client) readSmall(ctx context.Context, u *url.URL) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, statusError(resp)
	}
	b, err := io.ReadAll(io.LimitReader(resp.Body, digestFileBytes+1))
	if err != nil {
		return nil, err
	}
	if len(b) > digestFileBytes {
		return nil, fmt.Errorf("%s has more than %d bytes, too many for a digest file", display(u), digestFileBytes)
	}
	return b, nil
}

// digestLine is one line of a digest file; name is "" if the line has none.
type digestLine struct{ sum, name string }

// parseDigestFile returns the sha256 of the file at address. It accepts the formats that
// upstreams use: only a digest; sha256sum's "digest  name" and "digest *name", one or
// several lines; and BSD's "SHA256 (name) = digest". Other lines, such as those of a
// signature, are ignored. If several lines have the file's name, the one with the longest
// matching path is used.
func parseDigestFile(text []byte, address string) (string, error) {
	lines, err := digestLines(text)
	if err != nil {
		return "", err
	}
	if len(lines) == 0 {
		return "", errors.New("it contains no sha256; check digestAddress")
	}
	if len(lines) == 1 && (lines[0].name == "" || lines[0].name == "-") {
		return lines[0].sum, nil
	}
	best, sums := 0, []string{}
	for _, l := range lines {
		n := commonFolders(l.name, address)
		switch {
		case n == 0 || n < best:
			continue
		case n > best:
			best, sums = n, sums[:0]
		}
		if !slices.Contains(sums, l.sum) {
			sums = append(sums, l.sum)
		}
	}
	switch len(sums) {
	case 1:
		return sums[0], nil
	case 0:
		return "", fmt.Errorf("it contains no sha256 for %s, but for %s; check address and digestAddress", baseName(address), someNames(lines))
	}
	return "", fmt.Errorf("it contains %d different sha256 for %s: %s; set sha256 in a versions file", len(sums), baseName(address), strings.Join(sums, ", "))
}

func digestLines(text []byte) ([]digestLine, error) {
	var lines []digestLine
	s := bufio.NewScanner(strings.NewReader(strings.TrimPrefix(string(text), "\ufeff")))
	s.Buffer(make([]byte, 0, 4096), digestFileBytes)
	for s.Scan() {
		if l, ok := parseDigestLine(strings.TrimSpace(s.Text())); ok {
			lines = append(lines, l)
		}
	}
	return lines, s.Err()
}

func parseDigestLine(s string) (digestLine, bool) {
	if rest, ok := strings.CutPrefix(s, "SHA256 ("); ok {
		i := strings.LastIndex(rest, ") = ")
		if i < 0 {
			return digestLine{}, false
		}
		sum := strings.ToLower(strings.TrimSpace(rest[i+len(") = "):]))
		return digestLine{sum, rest[:i]}, isHexDigest(sum)
	}
	sum, name, _ := strings.Cut(strings.ReplaceAll(s, "\t", " "), " ")
	sum = strings.ToLower(strings.TrimPrefix(sum, "sha256:"))
	name = strings.TrimPrefix(strings.TrimLeft(name, " "), "*")
	return digestLine{sum, name}, isHexDigest(sum)
}

// commonFolders returns the number of path elements, from the last, that name and address
// share; 0 if the file names differ.
func commonFolders(name, address string) int {
	if u, err := url.Parse(address); err == nil {
		address = u.Path
	}
	a := strings.Split(path.Clean("/"+strings.ReplaceAll(name, `\`, "/")), "/")
	b := strings.Split(path.Clean("/"+address), "/")
	n := 0
	for n < len(a) && n < len(b) && a[len(a)-1-n] != "" && a[len(a)-1-n] == b[len(b)-1-n] {
		n++
	}
	return n
}

// someNames lists the first names in a digest file.
func someNames(lines []digestLine) string {
	const most = 5
	var names []string
	for _, l := range lines[:min(len(lines), most)] {
		names = append(names, oneLine(path.Base(l.name)))
	}
	if more := len(lines) - most; more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}
