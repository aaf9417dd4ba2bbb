package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// keptDir is where a checkpoint lies that outlives its lab: beside the labs, with which
// it shares blocks.
func keptDir(cache, lab, name string) string {
	return filepath.Join(labsDir(cache), ".checkpoints", lab, name)
}

// Keep has a checkpoint of the lab outlive it: Resume brings the lab up from it, until
// Forget removes it. One of the same name that was kept before is replaced.
func (l *Lab) Keep(ctx context.Context, name string) error {
	return locked(ctx, l.cache(), func() error {
		s, err := readSaved(l.saved(name))
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("lab %s has no checkpoint %q of its own", l.Name, name)
		}
		if err != nil {
			return err
		}
		dir := keptDir(l.cache(), l.Name, name)
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
			return err
		}
		return os.Rename(s.dir, dir)
	})
}

// Forget removes a checkpoint, kept or not.
func Forget(ctx context.Context, cache, lab, name string) error {
	return locked(ctx, cache, func() error {
		found := false
		for _, dir := range []string{keptDir(cache, lab, name), filepath.Join(labsDir(cache), lab, "checkpoints", name)} {
			if _, err := os.Stat(filepath.Join(dir, "checkpoint.json")); err != nil {
				continue
			}
			found = true
			if err := os.RemoveAll(dir); err != nil {
				return err
			}
		}
		_ = os.Remove(filepath.Dir(keptDir(cache, lab, name))) // where it was the last one
		if !found {
			return fmt.Errorf("lab %s has no checkpoint %q", lab, name)
		}
		return nil
	})
}

// Checkpoints lists those that were kept, and those of labs that are up.
func Checkpoints(ctx context.Context, cache string) ([]*Saved, error) {
	var all []*Saved
	err := locked(ctx, cache, func() error {
		kept, err := keptIn(cache)
		if err != nil {
			return err
		}
		own, err := savedIn(filepath.Join(labsDir(cache), "*", "checkpoints", "*"))
		if err != nil {
			return err
		}
		all = append(kept, own...)
		for _, s := range all {
			if s.Size, err = taken(s.dir); err != nil {
				return err
			}
		}
		return nil
	})
	slices.SortFunc(all, func(a, b *Saved) int {
		return cmp.Or(cmp.Compare(a.Lab.Name, b.Lab.Name), a.Made.Compare(b.Made), cmp.Compare(a.Name, b.Name))
	})
	return all, err
}

func keptIn(cache string) ([]*Saved, error) {
	kept, err := savedIn(keptDir(cache, "*", "*"))
	for _, s := range kept {
		s.Kept = true
	}
	return kept, err
}

func savedIn(pattern string) ([]*Saved, error) {
	dirs, err := filepath.Glob(pattern)
	if err != nil {
		return nil, err
	}
	var all []*Saved
	for _, dir := range dirs {
		if strings.HasSuffix(dir, "~") {
			continue // one that is being made
		}
		s, err := readSaved(dir)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

// Resume brings a lab up from a checkpoint that was kept: in this process or a later one,
// after the lab was taken down or the machine was started again. Its addresses, keys and
// folders are the same. It is an error if a lab of that name is up (Restore is for that),
// or one that has its addresses. Of o, what says how hosts are is not looked at.
func Resume(ctx context.Context, o Options, name string) (*Lab, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	begun := time.Now()
	var s *Saved
	return o.bring(ctx, begun, func() (l *Lab, err error) {
		err = locked(ctx, o.Cache, func() error {
			l, s, err = reserveAgain(o, name)
			return err
		})
		return l, err
	}, func(l *Lab) error {
		return l.inTurn(ctx,
			func(ctx context.Context) error {
				return copyFolder(ctx, filepath.Join(s.dir, "ssh"), filepath.Join(l.Dir, "ssh"))
			},
			l.makeNetwork, l.watch,
			func(ctx context.Context) error { return l.lay(ctx, s) },
			func(ctx context.Context) error {
				if err := os.WriteFile(l.script(), hostScript, 0o644); err != nil {
					return err
				}
				return l.BootAll(ctx, l.those(s.Running)...)
			})
	})
}

// reserveAgain makes the folder of a lab that was up before.
func reserveAgain(o Options, name string) (*Lab, *Saved, error) {
	s, err := readSaved(keptDir(o.Cache, o.Name, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("no checkpoint %q of lab %s was kept", name, o.Name)
	}
	if err != nil {
		return nil, nil, err
	}
	was := s.Lab
	l := &Lab{Name: was.Name, Index: was.Index, Net: was.Net, Net6: was.Net6, Dir: filepath.Join(labsDir(o.Cache), o.Name), DiskSize: was.DiskSize, log: o.Log}
	l.Hosts = slices.Clone(was.Hosts)
	for i := range l.Hosts {
		l.Hosts[i].Holder = Process{}
	}
	switch taken, err := l.free(o.Cache); {
	case err != nil:
		return nil, nil, err
	case taken[l.Index] != "":
		return nil, nil, fmt.Errorf("lab %s has the addresses of checkpoint %s of lab %s, %s: take it down first", taken[l.Index], name, l.Name, l.Subnet())
	case l.Dir != was.Dir || l.Name != o.Name:
		return nil, nil, fmt.Errorf("checkpoint %s was made of a lab in %s: its files name each other by that path", name, was.Dir)
	case s.Kernel != kernel():
		return nil, nil, fmt.Errorf("checkpoint %s was made under kernel %s, and its hosts know the modules of that one: forget it, and make it again", name, s.Kernel)
	}
	return l, s, l.settle(o.Cache)
}
