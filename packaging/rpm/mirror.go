package rpm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/mensylisir/kubexm/packaging"
)

// place is a repository with the URLs of its mirrors.
type place struct {
	packaging.Web
	bases []string
}

// read calls f with a file of the repository, from the first mirror that has it complete;
// f is called again for each mirror.
func (p place) read(ctx context.Context, path string, f func(io.Reader) error) error {
	var errs []error
	absent := 0
	for _, base := range p.bases {
		url := strings.TrimSuffix(base, "/") + "/" + path
		err := p.open(ctx, url, f)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if errors.Is(err, fs.ErrNotExist) {
			absent++
		}
		errs = append(errs, fmt.Errorf("%s: %w", url, err))
	}
	if absent < len(errs) {
		// If one mirror lacks the file, it may still exist on others.
		for i, err := range errs {
			if errors.Is(err, fs.ErrNotExist) {
				errs[i] = errors.New(err.Error())
			}
		}
	}
	return errors.Join(errs...)
}

func (p place) open(ctx context.Context, url string, f func(io.Reader) error) error {
	r, err := p.Open(ctx, url)
	if err != nil {
		return err
	}
	defer r.Close()
	return f(r)
}

// all reads a small file into memory.
func all(into *[]byte, limit int64) func(io.Reader) error {
	return func(r io.Reader) error {
		b, err := io.ReadAll(io.LimitReader(r, limit+1))
		if err != nil {
			return err
		}
		if int64(len(b)) > limit {
			return fmt.Errorf("it is longer than %d bytes", limit)
		}
		*into = b
		return nil
	}
}
