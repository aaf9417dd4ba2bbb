// Package apttest lets tests read the lists that apt has on a machine.
//
// It imports nothing of this module.
package apttest

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Lists are the lists that apt downloaded: files named after their URLs, compressed in
// apt's format, which apt-helper decompresses. Their digests are of the uncompressed text.
type Lists string

// Open implements packaging.Web.
func (l Lists) Open(_ context.Context, url string) (io.ReadCloser, error) {
	_, rest, _ := strings.Cut(url, "://")
	name := filepath.Join(string(l), strings.ReplaceAll(rest, "/", "_"))
	if f, err := os.Open(name); err == nil {
		return f, nil
	}
	if _, err := os.Stat(name + ".lz4"); err != nil {
		return nil, fmt.Errorf("%s: %w", name, fs.ErrNotExist)
	}
	c := exec.Command("/usr/lib/apt/apt-helper", "cat-file", name+".lz4")
	out, err := c.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return struct {
		io.Reader
		io.Closer
	}{out, closer(c.Wait)}, c.Start()
}

type closer func() error

func (c closer) Close() error { return c() }
