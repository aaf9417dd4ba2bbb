package pki

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/mensylisir/kubexm/manifest/durable"
)

// Files keeps other secrets than pairs in one folder: mode 0600, whole or not at all.
type Files struct{ Dir string }

// Once gives the file of that name, made now if there is none. Two runs at once
// get the same.
func (f Files) Once(name string, create func() ([]byte, error)) (text []byte, err error) {
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

// Replace writes the file of that name.
func (f Files) Replace(name string, text []byte) error {
	return Store(f).Locked(func() error { return durable.WriteFile(filepath.Join(f.Dir, name), text, 0o600) })
}
