package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// sizes is on how many sizes of disk each way to fill it is tried.
const sizes = 20

// diskRows are disks that are too small, from the start or because somebody
// else fills them meanwhile.
func diskRows() []row {
	var rows []row
	for i := range sizes {
		rows = append(rows, row{
			group: "disk", fault: fmt.Sprintf("too small from the start, size %d of %d", i+1, sizes), quick: i == sizes/2,
			expect: "exit 1: not enough free space; nothing left; the same bytes with room",
			run:    func(ctx context.Context, l *lab) (string, error) { return small(ctx, l, i) },
		}, row{
			group: "disk", fault: fmt.Sprintf("filled while it builds, size %d of %d", i+1, sizes), quick: i == sizes/2,
			expect: "exit 1: no space left on device; nothing left; the same bytes with room",
			run:    func(ctx context.Context, l *lab) (string, error) { return filled(ctx, l, i) },
		})
	}
	return append(rows, row{group: "disk", fault: "no inodes left", expect: "exit 1: no space left on device; nothing left; the same bytes with room", quick: true, run: inodes})
}

// mounted is a site whose cache and output are on a small disk of their own.
func (l *lab) mounted(ctx context.Context, name, options string, each time.Duration) (*site, func(), error) {
	s, err := l.site(ctx, name, &throttled{next: l.up, wait: each})
	if err != nil {
		return nil, nil, err
	}
	disk := filepath.Join(s.root, "disk")
	if err := os.Mkdir(disk, 0o750); err != nil {
		return nil, nil, err
	}
	if err := unix.Mount("tmpfs", disk, "tmpfs", 0, options); err != nil {
		s.close()
		return nil, nil, fmt.Errorf("%w: only root may mount a disk: %w", errSkipped, err)
	}
	s.out, s.cache = filepath.Join(disk, "out"), filepath.Join(disk, "cache")
	done := func() {
		if err := unix.Unmount(disk, 0); err != nil {
			_ = unix.Unmount(disk, unix.MNT_DETACH) // gone for everybody once nobody has it open
		}
		s.close()
	}
	if err := os.Mkdir(s.out, 0o750); err != nil {
		done()
		return nil, nil, err
	}
	return s, done, nil
}

// room gives the small disk another size.
func (s *site) room(options string) error {
	return unix.Mount("tmpfs", filepath.Dir(s.out), "tmpfs", unix.MS_REMOUNT, options)
}

// enough holds everything that a build writes.
const enough = "size=2g,nr_inodes=100k"

// need is how much a build of the lab's config takes on one disk.
func (l *lab) need() (int64, error) {
	info, err := os.Stat(l.whole)
	if err != nil {
		return 0, err
	}
	return 2 * info.Size(), nil
}

func small(ctx context.Context, l *lab, i int) (string, error) {
	need, err := l.need()
	if err != nil {
		return "", err
	}
	size := max(need*int64(i)/sizes, 64<<10) // from next to nothing to a little too little
	s, done, err := l.mounted(ctx, fmt.Sprintf("small-%d", i), fmt.Sprintf("size=%d", size), 0)
	if err != nil {
		return "", err
	}
	defer done()
	r := s.run(ctx, s.build(s.archive())...)
	word := "not enough free space"
	if i == 0 {
		word = "space" // the cache's own folders may find none
	}
	return r.String(), s.refused(ctx, r, 1, []string{word}, func() { err = s.room(enough) })
}

// filled has somebody else write to the disk once the build has looked how much
// is free and is at work: all but i twentieths of what it still takes.
func filled(ctx context.Context, l *lab, i int) (string, error) {
	need, err := l.need()
	if err != nil {
		return "", err
	}
	s, done, err := l.mounted(ctx, fmt.Sprintf("filled-%d", i), "size=1g", 60*time.Millisecond)
	if err != nil {
		return "", err
	}
	defer done()
	balloon := filepath.Join(filepath.Dir(s.out), "balloon")
	blown := make(chan error, 1)
	building, stop := context.WithCancel(ctx)
	defer stop()
	go func() { blown <- s.blow(building, balloon, need*int64(i)/sizes/2) }()
	r := s.run(ctx, s.build(s.archive())...)
	stop()
	if err := <-blown; err != nil {
		return r.String(), err
	}
	return r.String(), s.refused(ctx, r, 1, []string{"no space left on device"}, func() { _ = os.Remove(balloon) })
}

// blow waits until the build writes, and then takes the disk's space but for
// what is left.
func (s *site) blow(ctx context.Context, balloon string, left int64) error {
	for !working(s.cache) {
		if ctx.Err() != nil {
			return errors.New("the build ended before the disk was filled")
		}
		wait(ctx, time.Millisecond)
	}
	f, err := os.Create(balloon)
	if err != nil {
		return err
	}
	for {
		var st unix.Statfs_t
		if err := unix.Statfs(s.out, &st); err != nil {
			return errors.Join(err, f.Close())
		}
		free := int64(st.Bavail) * st.Bsize //nolint:gosec // a small disk
		err := unix.Fallocate(int(f.Fd()), 0, 0, max(free-left, 1))
		if !errors.Is(err, unix.ENOSPC) || free == 0 { // the build was quicker: look again
			return errors.Join(ignoreFull(err), f.Close())
		}
	}
}

// ignoreFull passes over a disk that is full already.
func ignoreFull(err error) error {
	if errors.Is(err, unix.ENOSPC) {
		return nil
	}
	return err
}

// working tells whether something has come into a cache.
func working(cache string) bool {
	found := false
	_ = filepath.WalkDir(filepath.Join(cache, "partial"), func(_ string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && filepath.Ext(d.Name()) == ".part" {
			found = true
		}
		return nil // a folder that is not there yet holds nothing
	})
	return found
}

func inodes(ctx context.Context, l *lab) (string, error) {
	s, done, err := l.mounted(ctx, "inodes", "size=1g,nr_inodes=60", 0)
	if err != nil {
		return "", err
	}
	defer done()
	r := s.run(ctx, s.build(s.archive())...)
	return r.String(), s.refused(ctx, r, 1, []string{"no space left on device"}, func() { err = s.room(enough) })
}
