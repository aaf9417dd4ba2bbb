package packaging

import (
	"context"
	"io"
)

// Web opens URLs with the schemes http, https and file. If the file does not exist, the
// error wraps fs.ErrNotExist; any other error means that this is unknown. Implementations
// may cache metadata between runs.
type Web interface {
	Open(ctx context.Context, url string) (io.ReadCloser, error)
}
