//go:build !linux

package archive

import "os"

// reserve sets the size of f; only Linux can allocate the space.
func reserve(f *os.File, n int64) error { return f.Truncate(n) }
