package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
)

// Saved is a checkpoint: what the disks of a lab's hosts held at one moment, with folders
// of the machine that belong to that.
type Saved struct {
	Name    string    `json:"name"`
	Made    time.Time `json:"made"`
	Kernel  string    `json:"kernel"` // the release that hosts know the modules of
	Lab     *Lab      `json:"lab"`
	Running []string  `json:"running"` // the hosts that were not off
	Folders []string  `json:"folders"`
	// Settings are the machine's, which hosts write to and no disk of theirs holds.
	Settings []string `json:"settings"`
	// Kept is one that outlives its lab, see Keep.
	Kept bool `json:"kept"`
	// Size is what it would take by itself, in bytes. With the lab and other checkpoints
	// it shares what is the same.
	Size int64 `json:"-"`

	dir string
}

var savedForm = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`)

// Folder gives a folder of the machine that belongs to the lab: at the same path each
// time the lab is up, gone with it, and on a file system on which a checkpoint copies
// nothing. It is made where it is not there.
func (l *Lab) Folder(name string) (string, error) {
	dir := filepath.Join(l.Dir, "folders", name)
	return dir, os.MkdirAll(dir, 0o755)
}

// Checkpoint keeps what the hosts' disks hold, all at one moment, and what folders of
// the machine hold: kubexm's, with its bundle and configs. Hosts go on, and stand still
// for a part of a second. One of the same name is replaced. It goes away with the lab,
// unless Keep keeps it.
func (l *Lab) Checkpoint(ctx context.Context, name string, folders ...string) error {
	begun := time.Now()
	if !savedForm.MatchString(name) {
		return fmt.Errorf("name of a checkpoint %q: it must be of small letters, digits, dots, hyphens and underscores", name)
	}
	part := filepath.Join(l.Dir, "checkpoints", name+".part~")
	if err := l.save(); err != nil {
		return err
	}
	stood, err := l.checkpoint(ctx, name, part, folders)
	if err != nil {
		return errors.Join(fmt.Errorf("checkpoint %s of lab %s: %w", name, l.Name, err), os.RemoveAll(part))
	}
	dir := l.saved(name)
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.Rename(part, dir); err != nil {
		return err
	}
	l.log.InfoContext(ctx, "checkpoint", "lab", l.Name, "name", name, "took", time.Since(begun).Round(time.Millisecond), "hosts_stood_still", stood.Round(time.Millisecond))
	return nil
}

func (l *Lab) saved(name string) string { return filepath.Join(l.Dir, "checkpoints", name) }

func (l *Lab) checkpoint(ctx context.Context, name, into string, folders []string) (stood time.Duration, err error) {
	s := Saved{Name: name, Made: time.Now().UTC().Round(time.Second), Kernel: kernel(), Lab: l, Settings: settings()}
	for _, f := range folders {
		path, err := l.mayBeSaved(f)
		if err != nil {
			return 0, err
		}
		s.Folders = append(s.Folders, path)
	}
	if err := os.RemoveAll(into); err != nil {
		return 0, err
	}
	if err := os.MkdirAll(filepath.Join(into, "disks"), 0o755); err != nil {
		return 0, err
	}
	if stood, err = l.saveDisks(ctx, &s, filepath.Join(into, "disks")); err != nil {
		return 0, err
	}
	for i, f := range s.Folders {
		if err := copyFolder(ctx, f, filepath.Join(into, fmt.Sprintf("folder-%d", i))); err != nil {
			return 0, err
		}
	}
	if err := copyFolder(ctx, filepath.Join(l.Dir, "ssh"), filepath.Join(into, "ssh")); err != nil {
		return 0, err
	}
	l.mu.Lock()
	raw, err := json.MarshalIndent(s, "", "  ")
	l.mu.Unlock()
	if err != nil {
		return 0, err
	}
	return stood, os.WriteFile(filepath.Join(into, "checkpoint.json"), append(raw, '\n'), 0o600)
}

// mayBeSaved gives a folder's full path, unless putting it back would do harm.
func (l *Lab) mayBeSaved(folder string) (string, error) {
	path, err := filepath.Abs(folder)
	if err != nil {
		return "", err
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return "", err
	}
	is, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if !is.IsDir() {
		return "", fmt.Errorf("%s is not a folder", path)
	}
	own := filepath.Join(l.Dir, "folders")
	if within(labsDir(l.cache()), path) || within(path, labsDir(l.cache())) && !within(path, own) {
		return "", fmt.Errorf("%s holds what is the lab's own, and cannot be put back while it is up", path)
	}
	return path, nil
}

// within reports whether a path is a folder or in it.
func within(path, folder string) bool {
	return path == folder || strings.HasPrefix(path, strings.TrimSuffix(folder, "/")+"/")
}

// saveDisks copies the disks of all hosts as they are at one moment.
func (l *Lab) saveDisks(ctx context.Context, s *Saved, into string) (stood time.Duration, err error) {
	var running []*Host
	for i := range l.Hosts {
		if h := &l.Hosts[i]; h.emulated() && h.Holder.alive() {
			return 0, fmt.Errorf("host %s is an emulated machine, whose disk is not to be had while it runs: take its power first", h.Name)
		} else if h.Holder.alive() {
			running = append(running, h)
			s.Running = append(s.Running, h.Name)
		}
	}
	f, err := freeze(ctx, running)
	if err != nil {
		return 0, err
	}
	begun := time.Now()
	var g errgroup.Group
	for i := range l.Hosts {
		h := &l.Hosts[i]
		g.Go(func() error { return copyDisk(ctx, l.disk(h), filepath.Join(into, h.Name+".img")) })
	}
	err = errors.Join(g.Wait(), f.thaw())
	return time.Since(begun), err
}

// copyFolder copies a folder with all that is in it. No file is the same file: what is
// written to one later does not change the other.
func copyFolder(ctx context.Context, from, to string) error {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	return command(ctx, "cp", "-a", "--reflink=auto", from+"/.", to)
}

// Restore brings the lab's hosts and the folders back to what they were at a checkpoint,
// whatever happened to them since, and returns when the hosts are up. For the hosts it is
// a loss of power at that moment. What is in the folders and was not there then is
// removed. The watch over what tries to leave goes on.
func (l *Lab) Restore(ctx context.Context, name string) error {
	begun := time.Now()
	s, err := l.find(name)
	if err != nil {
		return err
	}
	if err := l.restore(ctx, s); err != nil {
		return fmt.Errorf("restore checkpoint %s of lab %s: %w", name, l.Name, err)
	}
	l.log.InfoContext(ctx, "restored", "lab", l.Name, "name", name, "took", time.Since(begun).Round(time.Millisecond))
	return nil
}

func (l *Lab) restore(ctx context.Context, s *Saved) error {
	var g errgroup.Group
	for i := range l.Hosts {
		h := &l.Hosts[i]
		g.Go(func() error {
			if err := l.off(ctx, h); err != nil {
				return fmt.Errorf("host %s: %w", h.Name, err)
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	if err := l.lay(ctx, s); err != nil {
		return err
	}
	return l.BootAll(ctx, l.those(s.Running)...)
}

// lay puts the disks and folders of a checkpoint in their places, and the machine's
// settings to what they were.
func (l *Lab) lay(ctx context.Context, s *Saved) error {
	for i := range l.Hosts {
		h := &l.Hosts[i]
		if err := os.MkdirAll(filepath.Join(l.hostDir(h), "root"), 0o755); err != nil {
			return err
		}
		if err := copyDisk(ctx, filepath.Join(s.dir, "disks", h.Name+".img"), l.disk(h)); err != nil {
			return err
		}
	}
	for i, f := range s.Folders {
		if err := empty(f); err != nil {
			return err
		}
		if err := copyFolder(ctx, filepath.Join(s.dir, fmt.Sprintf("folder-%d", i)), f); err != nil {
			return err
		}
	}
	return putBack(s.Settings, l.log)
}

// empty removes what is in a folder. The folder itself stays: somebody may be in it.
func empty(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

func (l *Lab) those(names []string) []*Host {
	var hosts []*Host
	for i := range l.Hosts {
		if slices.Contains(names, l.Hosts[i].Name) {
			hosts = append(hosts, &l.Hosts[i])
		}
	}
	return hosts
}

// find gives a checkpoint of the lab: its own, or one that was kept.
func (l *Lab) find(name string) (*Saved, error) {
	for _, dir := range []string{l.saved(name), keptDir(l.cache(), l.Name, name)} {
		s, err := readSaved(dir)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err == nil && (s.Lab.Index != l.Index || len(s.Lab.Hosts) != len(l.Hosts)):
			return nil, fmt.Errorf("checkpoint %s is of another lab that was called %s: take this one down, and resume that", name, l.Name)
		}
		return s, err
	}
	return nil, fmt.Errorf("lab %s has no checkpoint %q", l.Name, name)
}

func readSaved(dir string) (*Saved, error) {
	raw, err := os.ReadFile(filepath.Join(dir, "checkpoint.json"))
	if err != nil {
		return nil, err
	}
	s := &Saved{dir: dir}
	if err := json.Unmarshal(raw, s); err != nil {
		return nil, fmt.Errorf("checkpoint in %s: %w", dir, err)
	}
	if s.Lab == nil {
		return nil, fmt.Errorf("checkpoint in %s: it names no lab", dir)
	}
	return s, nil
}

// taken is what the files of a folder take on the disk, in bytes.
func taken(dir string) (int64, error) {
	var sum int64
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var is syscall.Stat_t
		if err := syscall.Lstat(path, &is); err != nil {
			return err
		}
		sum += is.Blocks * 512
		return nil
	})
	return sum, err
}

func kernel() string {
	release, _ := setting("kernel.osrelease")
	return release
}
