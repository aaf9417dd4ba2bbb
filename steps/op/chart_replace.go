package op

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/steps/runner"
)

// maxChart is the maximum unpacked size of a chart, in bytes.
const maxChart = 64 << 20

// replaced returns text with all replacements of words applied.
func replaced(text []byte, words map[string]string) []byte {
	var pairs []string
	for _, old := range slices.Sorted(maps.Keys(words)) {
		pairs = append(pairs, old, words[old])
	}
	return []byte(strings.NewReplacer(pairs...).Replace(string(text)))
}

// rewritten changes an upload so that it sends the chart with replaced words. Helm's
// post-renderer is no alternative, because it does not process hooks.
func rewritten(ctx context.Context, up *runner.Upload, words map[string]string) error {
	rc, err := up.Open(ctx)
	if err != nil {
		return err
	}
	archive, err := rewriteChart(rc, words)
	if err := errors.Join(err, rc.Close()); err != nil {
		return err
	}
	sum := sha256.Sum256(archive)
	up.Size, up.SHA256 = int64(len(archive)), hex.EncodeToString(sum[:])
	up.Open = func(context.Context) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(archive)), nil }
	return nil
}

// rewriteChart repacks a chart archive with words replaced in its files, and in those of
// its packaged subcharts.
func rewriteChart(r io.Reader, words map[string]string) ([]byte, error) {
	z, err := gzip.NewReader(r)
	if err != nil {
		return nil, err
	}
	in := tar.NewReader(io.LimitReader(z, maxChart))
	var out bytes.Buffer
	packed := gzip.NewWriter(&out)
	to := tar.NewWriter(packed)
	for {
		head, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		text, err := io.ReadAll(in)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", head.Name, err)
		}
		if strings.HasSuffix(head.Name, ".tgz") {
			if text, err = rewriteChart(bytes.NewReader(text), words); err != nil {
				return nil, fmt.Errorf("%s: %w", head.Name, err)
			}
		} else {
			text = replaced(text, words)
		}
		head.Size = int64(len(text))
		if err := to.WriteHeader(head); err != nil {
			return nil, err
		}
		if _, err := to.Write(text); err != nil {
			return nil, err
		}
	}
	err = errors.Join(to.Close(), packed.Close())
	return out.Bytes(), err
}
