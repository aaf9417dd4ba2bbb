package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
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
	Disk   int64   `json:"peakDiskBytes,omitempty"` // of the folder that was watched
	Output int64   `json:"outputBytes,omitempty"`
}

// and adds what ran after it.
func (s sample) and(next sample) sample {
	return sample{
		Wall: s.Wall + next.Wall, CPU: s.CPU + next.CPU, Memory: max(s.Memory, next.Memory),
		Disk: max(s.Disk, next.Disk), Output: next.Output,
	}
}

// process is what is to be run.
type process struct {
	args []string
	out  string   // a folder whose space is watched; may be empty
	home string   // where it lives, and may leave what it likes; empty for the work set's folder
	env  []string // further variables
	dir  string   // where it runs, if not at home

	stdout io.Writer // nil: nobody reads it
}

// kubexm is a run of the binary that is measured, named as -wrap may say it.
func (w *work) kubexm(step string, args ...string) []string {
	return append(append(w.before(step), w.binary), args...)
}

// before gives the words of -wrap for a step.
func (w *work) before(step string) []string {
	return strings.Fields(strings.ReplaceAll(w.wrap, "{}", step))
}

// measure runs a process to its end, after the disk has come to rest, and looks
// at its memory and at the space of a folder meanwhile. It inherits nothing from
// the environment but the PATH, and is asked not to tell anybody of its use.
func (w *work) measure(ctx context.Context, p process) (sample, error) {
	if w.scale >= 1 { // of little the disk makes no difference
		unix.Sync()
	}
	if p.home == "" {
		p.home = w.dir
	}
	tmp := filepath.Join(p.home, "tmp")
	if err := os.MkdirAll(tmp, 0o750); err != nil {
		return sample{}, err
	}
	c := exec.CommandContext(ctx, p.args[0], p.args[1:]...)
	switch {
	case p.dir != "":
		c.Dir = p.dir
	case w.wrap == "": // a profiler's files are to be found
		c.Dir = p.home
	}
	c.Stdout = p.stdout
	c.Env = append([]string{
		"HOME=" + p.home, "TMPDIR=" + tmp, "XDG_CACHE_HOME=" + filepath.Join(p.home, "cache"), "PATH=" + os.Getenv("PATH"),
		"NO_PROXY=127.0.0.1", "DO_NOT_TRACK=1",
	}, p.env...)
	var stderr bytes.Buffer
	c.Stderr = &stderr
	begin := time.Now()
	if err := c.Start(); err != nil {
		return sample{}, err
	}
	peaks := watch(c.Process.Pid, p.out)
	err := c.Wait()
	s := sample{Wall: time.Since(begin).Seconds(), CPU: (c.ProcessState.UserTime() + c.ProcessState.SystemTime()).Seconds()}
	s.Memory, s.Disk = peaks()
	if err != nil {
		return s, fmt.Errorf("%s: %w\n%s", strings.Join(p.args, " "), err, stderr.String())
	}
	if p.out != "" {
		s.Output = size(p.out, func(i fs.FileInfo) int64 { return i.Size() })
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
