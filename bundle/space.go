package bundle

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/mensylisir/kubexm/bundle/archive"
)

// Space is the space that a build needs on one file system.
type Space struct {
	Dirs []string `json:"dirs"` // folders on it that the build writes to
	Need int64    `json:"need"` // bytes that will be written
	Free int64    `json:"free"` // bytes free for an unprivileged user

	device uint64
}

// SpaceError lists the file systems that are too small.
type SpaceError struct{ Short []Space }

func (e *SpaceError) Error() string {
	var parts []string
	for _, s := range e.Short {
		parts = append(parts, fmt.Sprintf("the file system of %s has %s free and needs %s",
			strings.Join(s.Dirs, " and "), Bytes(s.Free), Bytes(s.Need)))
	}
	return "not enough free space: " + strings.Join(parts, "; ")
}

// planOf computes the work of a build and the space that it needs on each file system.
func planOf(r BuildRequest, all []job, l *archive.Layout, from *sources, left *archive.Unfinished) Plan {
	p := Plan{}
	var kept, unpacked int64
	parallel := int64(max(r.Parallel, 1))
	for _, j := range all {
		missing := int64(0)
		for _, b := range j.blobs {
			p.Blobs++
			p.Bytes += b.Size
			if left.Has(b.Digest) || from.has(b) {
				p.Cached += b.Size
				continue
			}
			missing += b.Size
			if r.KeepCache || j.keep {
				kept += b.Size
			}
		}
		if missing > 0 {
			p.Download += j.size
			switch {
			case j.unpack != nil && !r.KeepCache:
				unpacked = max(unpacked, j.size)
			case j.stream == nil:
				// An archive of files is in the cache beside the files extracted from it.
				unpacked = max(unpacked, j.size+missing)
			}
		}
	}
	there := int64(0)
	if left.Continues() {
		there = left.Disk
	}
	p.Space = addSpace(p.Space, filepath.Dir(r.Output), max(0, withParity(l.MaxSize(), r.Volumes)-there))
	p.Space = addSpace(p.Space, r.Cache.Dir(), kept+unpacked*parallel)
	return p
}

// addSpace adds need bytes to the file system of dir.
func addSpace(all []Space, dir string, need int64) []Space {
	free, device, err := freeSpace(dir)
	if err != nil {
		return all // without figures the file system cannot be checked
	}
	for i := range all {
		if all[i].device == device {
			all[i].Need += need
			all[i].Dirs = append(all[i].Dirs, dir)
			return all
		}
	}
	return append(all, Space{Dirs: []string{dir}, Need: need, Free: free, device: device})
}

func checkSpace(all []Space) error {
	var short []Space
	for _, s := range all {
		if s.Need > s.Free {
			short = append(short, s)
		}
	}
	if len(short) == 0 {
		return nil
	}
	return &SpaceError{Short: short}
}

// freeSpace returns the bytes free for an unprivileged user at dir or its nearest existing
// parent, and the device of that file system.
func freeSpace(dir string) (free int64, device uint64, err error) {
	for {
		var st unix.Stat_t
		if err = unix.Stat(dir, &st); err == nil {
			var fs unix.Statfs_t
			if err = unix.Statfs(dir, &fs); err != nil {
				return 0, 0, fmt.Errorf("free space of %s: %w", dir, err)
			}
			return int64(fs.Bavail) * int64(fs.Bsize), uint64(st.Dev), nil //nolint:gosec // sizes of real file systems fit
		}
		parent := filepath.Dir(dir)
		if !os.IsNotExist(err) || parent == dir {
			return 0, 0, fmt.Errorf("free space of %s: %w", dir, err)
		}
		dir = parent
	}
}

// Bytes formats a number of bytes: "512 B", "1.4 GiB".
func Bytes(n int64) string {
	const unit = 1024
	if n < unit {
		return fmt.Sprintf("%d B", n)
	}
	f, exp := float64(n)/unit, 0
	for f >= unit && exp < 4 {
		f /= unit
		exp++
	}
	return fmt.Sprintf("%.1f %ciB", f, "KMGTP"[exp])
}
