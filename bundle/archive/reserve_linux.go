package archive

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// reserve takes n bytes of disk for f, so that a full disk is found before the
// work and not after it. File systems that cannot do it are passed over.
func reserve(f *os.File, n int64) error {
	err := unix.Fallocate(int(f.Fd()), 0, 0, n)
	for errors.Is(err, unix.EINTR) {
		err = unix.Fallocate(int(f.Fd()), 0, 0, n)
	}
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		return f.Truncate(n)
	}
	return err
}
