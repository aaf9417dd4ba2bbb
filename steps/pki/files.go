package pki

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/mensylisir/kubexm/manifest/durable"
)

// Files stores secrets other than pairs in one folder, with mode 0600. Writes are atomic.
type Files struct{ Dir string }

// ReadOrCreate returns the content of the file of that name. If it does not exist, ReadOrCreate writes
// the result of create first. Concurrent runs get the same content.
func (f Files) ReadOrCreate(name string, create func() ([]byte, error)) (text []byte, err error) {
	err = Store(f).Locked(func() error {
		text, err = os.ReadFile(filepath.Join(f.Dir, name))
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if text, err = create(); err != nil {
			return err
		}
		return durable.Create(filepath.Join(f.Dir, name), text, 0o600)
	})
	return text, err
}

// Replace writes the file of that name, and overwrites an existing one.
func (f Files) Replace(name string, text []byte) error {
	return Store(f).Locked(func() error { return durable.WriteFile(filepath.Join(f.Dir, name), text, 0o600) })
}
