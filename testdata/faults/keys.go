package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
)

// keys are a pair that signs in the rows, as `kubexm keys generate` makes one.
type keys struct {
	once                      sync.Once
	private, public, password string // files
	err                       error
}

// keys makes the pair where there is none yet.
func (l *lab) keys(ctx context.Context) (*keys, error) {
	k := &l.signing
	k.once.Do(func() {
		dir := filepath.Join(l.dir, "keys")
		k.private, k.public, k.password = filepath.Join(dir, "site.key"), filepath.Join(dir, "site.pub"), filepath.Join(dir, "password")
		if k.err = os.MkdirAll(dir, 0o700); k.err != nil {
			return
		}
		if k.err = os.WriteFile(k.password, []byte("of the rows' own key"), 0o600); k.err != nil {
			return
		}
		s := &site{lab: l, root: dir}
		if r := s.run(ctx, "keys", "generate", "--output-key-prefix", filepath.Join(dir, "site"), "--key-password-file", k.password); r.code != 0 {
			k.err = fmt.Errorf("keys: %s", r)
		}
	})
	return k, k.err
}
