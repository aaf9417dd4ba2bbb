package main

import (
	"bytes"
	"cmp"
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
	Disk   int64   `json:"peakDiskBytes,omitempty"` // of the watched folder
	Output int64   `json:"outputBytes,omitempty"`
}

// and adds the sample of a process that ran after it.
func (s sample) and(next sample) sample {
	return sample{
		Wall: s.Wall + next.Wall, CPU: s.CPU + next.CPU, Memory: max(s.Memory, next.Memory),
		Disk: max(s.Disk, next.Disk), Output: next.Output,
	}
}

// process is a process to measure.
type process struct {
	args []string
	out  string   // the folder of the output; may be empty
	disk string   // a folder whose size is watched, if not out
	home string   // its home, which it may fill; empty for the work set's folder
	env  []string // further variables
	dir  string   // working directory, if not its home

	stdout io.Writer // nil: output is discarded
}

// kubexm is a run of the measured binary, with the name that -wrap uses.
func (w *work) kubexm(step string, args ...string) []string {
	return append(append(w.before(step), w.binary), args...)
}

// before returns the words of -wrap for a step.
func (w *work) before(step string) []string {
	return strings.Fields(strings.ReplaceAll(w.wrap, "{}", step))
}

// measure waits for the disk to become idle, runs a process to its end, and watches its memory
// and the size of a folder. The process inherits only PATH from the environment, and telemetry
// is disabled.
func (w *work) measure(ctx context.Context, p process) (sample, error) {
	if w.scale >= 1 { // for little data the disk makes no difference
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
	case w.wrap == "": // the files of a profiler have to be found
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
	peaks := watch(c.Process.Pid, cmp.Or(p.disk, p.out))
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

// watch samples a process and a folder until the returned function is called, which returns
// their maximum memory and size. The kernel's accounting of a child would include the memory
// of this process.
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

// size returns the total size of the files in a folder.
func size(dir string, of func(fs.FileInfo) int64) (total int64) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			if info, err := d.Info(); err == nil {
				total += of(info)
			}
		}
		return nil // a deleted file has no size
	})
	return total
}
