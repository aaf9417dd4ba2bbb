package packaging

import (
	"context"
	"io"
)

// Web opens what an address names: http, https and file. Where there is nothing
// the error wraps fs.ErrNotExist; any other error means that nobody knows. Who
// keeps metadata between two runs does so in a Web.
type Web interface {
	Open(ctx context.Context, url string) (io.ReadCloser, error)
}
