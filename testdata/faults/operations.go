package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/mensylisir/kubexm/bundle/sign"
	"github.com/mensylisir/kubexm/manifest/durable"
)

// operations are what kubexm writes on the machine that it runs on.
func operations() []operation {
	return []operation{buildOperation(), lockOperation(), keysOperation(), signOperation(), extractOperation(), installOperation()}
}

// quick are the operations that a smoke of the table tries: one that only fetches and
// writes, and one that others rely on meanwhile.
func (d operation) quick() bool { return d.name == "bundle build" || len(d.phases) > 1 }

func (s *stand) at(name string) string { return filepath.Join(s.dir, name) }

// stood leaves out what is no error of a file that may be missing.
func stood(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// put copies a file onto the disk, to stay.
func (s *stand) put(from, to string, mode fs.FileMode) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return durable.WriteFile(s.at(to), text, mode)
}

func buildOperation() operation {
	return operation{name: "bundle build", phases: []phase{{
		name:  "build",
		args:  func(s *stand) []string { return s.build(s.archive()) },
		whole: func(s *stand) error { return s.inspect() },
		done: func(_ context.Context, s *stand) error {
			return errors.Join(s.same(s.archive()), onlyIn(s.out, "bundle.tar.zst"), wholeCache(s.cache))
		},
	}}}
}

// lockOperation pins a config that has no lock yet. The lock is always the same.
func lockOperation() operation {
	check := func(s *stand) error {
		text, err := os.ReadFile(s.at("out/kubexm.lock"))
		if err != nil {
			return err
		}
		s.measured.seen.Lock()
		defer s.measured.seen.Unlock()
		if s.measured.lock == nil {
			s.measured.lock = text
		}
		if !bytes.Equal(s.measured.lock, text) {
			return fmt.Errorf("ANOTHER LOCK, of %d bytes where there were %d", len(text), len(s.measured.lock))
		}
		return nil
	}
	return operation{name: "bundle lock", phases: []phase{{
		name:  "lock",
		args:  func(s *stand) []string { return s.args("lock", "--lock", s.at("out/kubexm.lock")) },
		whole: func(s *stand) error { return errors.Join(stood(check(s)), wholeCache(s.cache)) },
		done: func(_ context.Context, s *stand) error {
			return errors.Join(check(s), onlyIn(s.out, "kubexm.lock"), wholeCache(s.cache))
		},
	}}}
}

// keysOperation makes a pair of keys. What stands of it under its name opens and fits.
func keysOperation() operation {
	pair := func(s *stand) (private, public []byte, err error) {
		private, err = os.ReadFile(s.at("out/cosign.key"))
		if err == nil {
			public, err = os.ReadFile(s.at("out/cosign.pub"))
		}
		return private, public, err
	}
	fits := func(s *stand) error {
		private, public, err := pair(s)
		if err != nil && (private == nil || !errors.Is(err, fs.ErrNotExist)) {
			return err
		}
		k, kerr := sign.LoadSigner(private, []byte("a password"))
		if kerr != nil {
			return fmt.Errorf("HALF A KEY: %w", kerr)
		}
		if own, kerr := k.PublicKey(); kerr != nil || err == nil && !bytes.Equal(own, public) {
			return fmt.Errorf("ANOTHER'S public key: %w", kerr)
		}
		st, kerr := os.Stat(s.at("out/cosign.key"))
		if kerr != nil || st.Mode().Perm() != 0o600 {
			return fmt.Errorf("the key is READABLE BY OTHERS: %s, %w", st.Mode(), kerr)
		}
		return err
	}
	args := func(s *stand) []string {
		return []string{"keys", "generate", "--output-key-prefix", s.at("out/cosign")}
	}
	return operation{name: "keys generate", phases: []phase{{
		name: "generate", args: args,
		whole: func(s *stand) error { return stood(fits(s)) },
		again: func(ctx context.Context, s *stand) error {
			before := fits(s)
			r := s.try(ctx, args(s), nil)
			if before == nil && r.code == 2 && strings.Contains(r.stderr, "exists") || r.code == 0 {
				return nil // both stood, and are not replaced
			}
			return errors.New(r.String())
		},
		done: func(_ context.Context, s *stand) error {
			return errors.Join(fits(s), onlyIn(s.out, "cosign.key", "cosign.pub"))
		},
	}}}
}

// signOperation signs an archive that stands.
func signOperation() operation {
	return operation{
		name: "bundle sign",
		prepare: func(ctx context.Context, s *stand) error {
			keys := []string{"keys", "generate", "--output-key-prefix", filepath.Join(s.root, "cosign")}
			if r := s.try(ctx, keys, nil); r.code != 0 {
				return errors.New(r.String())
			}
			return s.put(s.whole, "out/bundle.tar.zst", 0o644)
		},
		phases: []phase{{
			name: "sign",
			args: func(s *stand) []string {
				return []string{"bundle", "sign", "--sign-key", filepath.Join(s.root, "cosign.key"), s.archive()}
			},
			whole: func(s *stand) error {
				text, err := os.ReadFile(s.archive() + ".sigstore.json")
				if err == nil && !json.Valid(text) {
					err = fmt.Errorf("HALF A SIGNATURE: %d bytes", len(text))
				}
				return stood(err)
			},
			done: func(ctx context.Context, s *stand) error {
				if r := s.try(ctx, []string{"bundle", "verify", "--key", filepath.Join(s.root, "cosign.pub"), s.archive()}, nil); r.code != 0 {
					return fmt.Errorf("verify: %s", r)
				}
				return onlyIn(s.out, "bundle.tar.zst", "bundle.tar.zst.sigstore.json")
			},
		}},
	}
}

// extractOperation takes a bundle apart. What is left of it is removed before it is run
// again: a folder that is not empty is refused.
func extractOperation() operation {
	wrong := func(s *stand) error {
		return filepath.WalkDir(s.at("out/layout"), func(p string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || strings.HasPrefix(d.Name(), ".") || filepath.Base(filepath.Dir(p)) != "sha256" {
				return err
			}
			if got, err := hashFile(p); err != nil || got != d.Name() {
				return fmt.Errorf("HALF A BLOB: %s has %s: %w", p, got, err)
			}
			return nil
		})
	}
	indexed := func(s *stand) error {
		text, err := os.ReadFile(s.at("out/layout/index.json"))
		if err != nil {
			return stood(err)
		}
		var x struct{ Manifests []struct{ Digest string } }
		if err := json.Unmarshal(text, &x); err != nil || len(x.Manifests) != 1 {
			return fmt.Errorf("HALF AN INDEX: %w", err)
		}
		// It comes last: all that is in the layout is there.
		blobs, err := os.ReadDir(s.at("out/layout/blobs/sha256"))
		if err != nil {
			return err
		}
		s.measured.seen.Lock()
		defer s.measured.seen.Unlock()
		if s.measured.blobs == 0 {
			s.measured.blobs = len(blobs)
		}
		if s.measured.blobs != len(blobs) {
			return fmt.Errorf("AN INDEX WITHOUT ITS BLOBS: %d of %d", len(blobs), s.measured.blobs)
		}
		return nil
	}
	args := func(s *stand) []string {
		return []string{"bundle", "extract", "--allow-unsigned", s.whole, "--layout", s.at("out/layout")}
	}
	return operation{name: "bundle extract", phases: []phase{{
		name: "extract", args: args,
		whole: func(s *stand) error { return errors.Join(stood(wrong(s)), indexed(s)) },
		again: func(ctx context.Context, s *stand) error {
			if err := os.RemoveAll(s.at("out/layout")); err != nil {
				return err
			}
			if r := s.try(ctx, args(s), nil); r.code != 0 {
				return fmt.Errorf("extract again: %s", r)
			}
			return nil
		},
		done: func(_ context.Context, s *stand) error {
			_, err := os.Stat(s.at("out/layout/index.json"))
			return errors.Join(err, wrong(s), indexed(s))
		},
	}}}
}
