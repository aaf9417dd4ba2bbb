//go:build !linux

package archive

import "os"

// reserve gives f its size; only Linux can take the space at once.
func reserve(f *os.File, n int64) error { return f.Truncate(n) }
