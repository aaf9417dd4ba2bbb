package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// sample is one run of one process.
type sample struct {
	Wall   float64 `json:"wallSeconds"`
	CPU    float64 `json:"cpuSeconds"`
	Memory int64   `json:"peakMemoryBytes,omitempty"`
	Disk   int64   `json:"peakDiskBytes,omitempty"` // of the output's folder
	Output int64   `json:"outputBytes,omitempty"`
}

// round is everything once.
type round struct {
	Floor     sample `json:"floor"`
	Build     sample `json:"build"`
	Rebuild   sample `json:"rebuild"`
	Verify    sample `json:"verify"`
	Hash      sample `json:"sha256"`
	Hashed    sample `json:"hashedFloor"`
	Plain     sample `json:"tarZstd"`
	LinkFloor sample `json:"linkFloor"`
	LinkBuild sample `json:"linkBuild"`
}

// String gives the wall times in seconds.
func (r round) String() string {
	return fmt.Sprintf("floor %.1f (hashed %.1f), build %.1f (cpu %.1f, %d MB), rebuild %.1f (cpu %.1f), verify %.1f, sha256 %.1f, tar+zstd %.1f; on the link: floor %.1f, build %.1f",
		r.Floor.Wall, r.Hashed.Wall, r.Build.Wall, r.Build.CPU, r.Build.Memory/1e6, r.Rebuild.Wall, r.Rebuild.CPU, r.Verify.Wall, r.Hash.Wall, r.Plain.Wall, r.LinkFloor.Wall, r.LinkBuild.Wall)
}

// linkRate is the shared link's bytes a second.
const linkRate = 250e6

// round measures everything once, each thing beside what it is compared with.
func (w *work) round(ctx context.Context) (r round, err error) {
	if r.Floor, err = w.fetch(ctx, fetchPlain, "floor"); err != nil {
		return r, err
	}
	if r.Build, err = w.build(ctx, "built"); err != nil {
		return r, err
	}
	archive := filepath.Join(w.dir, "built", "out", "x.tar.zst")
	if r.Hash, err = w.measure(ctx, "", w.self, hashFiles, filepath.Join(w.dir, "built", "cache", "sha256")); err != nil {
		return r, err
	}
	if r.Verify, err = w.measure(ctx, "", w.binary, "bundle", "verify", "--allow-unsigned", archive); err != nil {
		return r, err
	}
	if r.Rebuild, err = w.build(ctx, "built"); err != nil {
		return r, err
	}
	if err = os.RemoveAll(filepath.Join(w.dir, "built")); err != nil {
		return r, err
	}
	if r.Hashed, r.Plain, err = w.plain(ctx); err != nil {
		return r, err
	}
	w.content.link.rate.Store(linkRate)
	defer w.content.link.rate.Store(0)
	if r.LinkFloor, err = w.fetch(ctx, fetchPlain, "floor"); err != nil {
		return r, err
	}
	r.LinkBuild, err = w.build(ctx, "linked")
	return r, errors.Join(err, os.RemoveAll(filepath.Join(w.dir, "linked")))
}

// fetch downloads everything to a folder and removes it again.
func (w *work) fetch(ctx context.Context, how, name string) (sample, error) {
	dir := filepath.Join(w.dir, name)
	if err := os.Mkdir(dir, 0o750); err != nil {
		return sample{}, err
	}
	s, err := w.measure(ctx, "", w.self, how, w.list, w.base, dir)
	return s, errors.Join(err, os.RemoveAll(dir))
}

// plain is what one would do by hand: download and hash, then tar and zstd. The
// first half is given by itself too.
func (w *work) plain(ctx context.Context) (hashed, all sample, err error) {
	dir, out := filepath.Join(w.dir, "plain"), filepath.Join(w.dir, "plain.tar.zst")
	if err := os.Mkdir(dir, 0o750); err != nil {
		return hashed, all, err
	}
	defer os.RemoveAll(dir)
	defer os.Remove(out)
	hashed, err = w.measure(ctx, "", w.self, fetchHashed, w.list, w.base, dir)
	if err != nil {
		return hashed, all, err
	}
	two, err := w.measure(ctx, "", "bash", "-c", "set -o pipefail; tar -C "+dir+" -c . | zstd -3 -T0 -q -o "+out)
	if err != nil {
		return hashed, all, err
	}
	info, err := os.Stat(out)
	if err != nil {
		return hashed, all, err
	}
	return hashed, sample{Wall: hashed.Wall + two.Wall, CPU: hashed.CPU + two.CPU, Output: info.Size()}, nil
}

// measure runs a process to its end, after the disk has come to rest, and looks
// at its memory and, where out is given, at the space of that folder meanwhile.
func (w *work) measure(ctx context.Context, out string, args ...string) (sample, error) {
	if w.scale >= 1 { // of little the disk makes no difference
		unix.Sync()
	}
	c := exec.CommandContext(ctx, args[0], args[1:]...)
	c.Env = []string{"HOME=" + w.dir, "PATH=" + os.Getenv("PATH"), "NO_PROXY=127.0.0.1", "XDG_CACHE_HOME=" + filepath.Join(w.dir, "lock-cache")}
	var stderr bytes.Buffer
	c.Stderr = &stderr
	begin := time.Now()
	if err := c.Start(); err != nil {
		return sample{}, err
	}
	peaks := watch(c.Process.Pid, out)
	err := c.Wait()
	s := sample{Wall: time.Since(begin).Seconds(), CPU: (c.ProcessState.UserTime() + c.ProcessState.SystemTime()).Seconds()}
	s.Memory, s.Disk = peaks()
	if err != nil {
		return s, fmt.Errorf("%s: %w\n%s", strings.Join(args, " "), err, stderr.String())
	}
	if out != "" {
		s.Output = size(out, func(i fs.FileInfo) int64 { return i.Size() })
	}
	return s, nil
}

var peakLine = regexp.MustCompile(`VmHWM:\s+(\d+) kB`)

// watch looks at a process and a folder until the function that it gives is
// called, which says how much memory and disk they had at most. The kernel's own
// count of a child would hold the memory of this process too.
func watch(pid int, dir string) func() (memory, disk int64) {
	stop, done := make(chan struct{}), make(chan [2]int64)
	go func() {
		tick := time.NewTicker(25 * time.Millisecond)
		defer tick.Stop()
		var peak [2]int64
		for {
			text, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status") // gone with the process
			if m := peakLine.FindSubmatch(text); m != nil {
				kib, _ := strconv.ParseInt(string(m[1]), 10, 64) // digits
				peak[0] = max(peak[0], kib<<10)
			}
			if dir != "" {
				peak[1] = max(peak[1], size(dir, func(i fs.FileInfo) int64 {
					if st, ok := i.Sys().(*syscall.Stat_t); ok {
						return st.Blocks * 512
					}
					return 0
				}))
			}
			select {
			case <-tick.C:
			case <-stop:
				done <- peak
				return
			}
		}
	}()
	return func() (int64, int64) { close(stop); p := <-done; return p[0], p[1] }
}

// size adds up the files that are in a folder when their turn comes.
func size(dir string, of func(fs.FileInfo) int64) (total int64) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			if info, err := d.Info(); err == nil {
				total += of(info)
			}
		}
		return nil // a file that is gone takes no space
	})
	return total
}
