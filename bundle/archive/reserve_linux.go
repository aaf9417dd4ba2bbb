package archive

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// reserve allocates n bytes of disk for f, so that a full disk is found before the work
// starts. If the file system does not support that, only the file's size is set.
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
