//go:build !linux

package archive

import "os"

// startWriteback leaves all to the flush at the end.
func startWriteback(*os.File) {}
