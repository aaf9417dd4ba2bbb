package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"

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
func (l *lab) mounted(ctx context.Context, name, options string, h http.Handler) (*site, func(), error) {
	s, err := l.site(ctx, name, h)
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

// need is how much a build of the lab's config takes on one disk, with what it expects
// compressed files to take at most.
func (l *lab) need() (int64, error) {
	info, err := os.Stat(l.whole)
	if err != nil {
		return 0, err
	}
	return info.Size() * 15 / 10, nil
}

func small(ctx context.Context, l *lab, i int) (string, error) {
	need, err := l.need()
	if err != nil {
		return "", err
	}
	size := max(need*int64(i)/sizes, 64<<10) // from next to nothing to a little too little
	s, done, err := l.mounted(ctx, fmt.Sprintf("small-%d", i), fmt.Sprintf("size=%d", size), l.up)
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
// is free and is at work: before one of the files that it asks for is sent, all
// but a part of what the build still takes.
func filled(ctx context.Context, l *lab, i int) (string, error) {
	need, err := l.need()
	if err != nil {
		return "", err
	}
	// What a build takes once it has reserved the space of what it does not compress.
	left := need * 15 / 100
	f := &filler{next: l.up, at: 3 + 2*(i%4), left: left * int64(i) / sizes}
	s, done, err := l.mounted(ctx, fmt.Sprintf("filled-%d", i), "size=1g", f)
	if err != nil {
		return "", err
	}
	defer done()
	f.on(filepath.Join(filepath.Dir(s.out), "balloon"))
	r := s.run(ctx, s.build(s.archive())...)
	if err := f.came(); err != nil {
		return r.String(), err
	}
	return r.String(), s.refused(ctx, r, 1, []string{"no space left on device"}, func() { _ = os.Remove(f.balloon) })
}

// filler takes the space of a disk at one of the requests for a file.
type filler struct {
	next    http.Handler
	at      int
	left    int64  // bytes that stay free
	balloon string // the file that takes the others

	mu    sync.Mutex
	count int
	err   error
}

// on names the file, before the build begins.
func (f *filler) on(balloon string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.balloon = balloon
}

func (f *filler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	if !strings.HasPrefix(r.URL.Path, "/v2/") { // documents of images come before the look at the disk
		if f.count++; f.count == f.at {
			f.err = f.blow() // the others wait
		}
	}
	f.mu.Unlock()
	f.next.ServeHTTP(w, r)
}

// came says why the disk was not filled.
func (f *filler) came() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil && f.count < f.at {
		return fmt.Errorf("the build asked for %d files, the disk was to be filled at the %dth", f.count, f.at)
	}
	return f.err
}

func (f *filler) blow() error {
	b, err := os.Create(f.balloon)
	if err != nil {
		return err
	}
	for {
		var st unix.Statfs_t
		if err := unix.Statfs(f.balloon, &st); err != nil {
			return errors.Join(err, b.Close())
		}
		free := int64(st.Bavail)*st.Bsize - f.left //nolint:gosec // a small disk
		if free <= 0 {
			return b.Close()
		}
		err := unix.Fallocate(int(b.Fd()), 0, 0, free)
		if !errors.Is(err, unix.ENOSPC) { // else the build was quicker: look again
			return errors.Join(err, b.Close())
		}
	}
}

func inodes(ctx context.Context, l *lab) (string, error) {
	s, done, err := l.mounted(ctx, "inodes", "size=1g,nr_inodes=60", l.up)
	if err != nil {
		return "", err
	}
	defer done()
	r := s.run(ctx, s.build(s.archive())...)
	return r.String(), s.refused(ctx, r, 1, []string{"no space left on device"}, func() { err = s.room(enough) })
}
