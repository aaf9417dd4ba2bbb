package mirror

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// recorder is a packaging.Web that keeps what it opens of some archives.
type recorder struct {
	dir   string   // a folder for each archive
	bases []string // addresses of the archives
}

// Open gives what is at an address, and keeps it where it is an archive's.
func (r *recorder) Open(ctx context.Context, address string) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	switch resp.StatusCode {
	case http.StatusOK:
	case http.StatusNotFound, http.StatusGone:
		return nil, fmt.Errorf("%s: %w", address, errors.Join(fs.ErrNotExist, resp.Body.Close()))
	default:
		return nil, fmt.Errorf("%s: %w", address, errors.Join(errors.New(resp.Status), resp.Body.Close()))
	}
	name := r.place(address)
	if name == "" {
		return resp.Body, nil
	}
	defer resp.Body.Close()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return nil, err
	}
	f, err := os.Create(name)
	if err != nil {
		return nil, err
	}
	if _, err := io.Copy(f, resp.Body); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	return os.Open(name)
}

// place gives the file that an address is kept in, "" where it is no archive's.
func (r *recorder) place(address string) string {
	for i, base := range r.bases {
		if rest, ok := strings.CutPrefix(address, base+"/"); ok && fs.ValidPath(rest) {
			return filepath.Join(r.dir, strconv.Itoa(i), filepath.FromSlash(rest))
		}
	}
	return ""
}
