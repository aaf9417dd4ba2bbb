package steps

import (
	"context"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/runner"
)

// DiskFullError is an error of a step that failed because a file system of its host
// is full.
type DiskFullError struct {
	Host string
	// Disk is the state of the file system after the failure. Its Mount is "" if the
	// file system is unknown.
	Disk runner.Disk
	// File is the size in bytes of the file that was written; 0 means unknown.
	File int64
	// Bundle is the total size in bytes, in the bundle, of all files and images that the
	// step uploads. Unpacked images need more space. 0 means none is known.
	Bundle int64
	Err    error
}

// Error returns the cause with the free and the required space.
func (e *DiskFullError) Error() string {
	var more []string
	switch d := e.Disk; {
	case d.Mount == "":
	case d.Inodes > 0 && d.InodesFree == 0:
		more = append(more, fmt.Sprintf("%s of %s has no inodes left", d.Mount, e.Host))
	default:
		more = append(more, fmt.Sprintf("%s of %s has %s free of %s", d.Mount, e.Host, size(d.Free), size(d.Size)))
	}
	if e.File > 0 {
		more = append(more, "the file needs "+sizeUp(e.File))
	}
	if e.Bundle > 0 {
		more = append(more, "the step uploads "+sizeUp(e.Bundle)+" from the bundle in total")
	}
	if len(more) == 0 {
		return e.Err.Error()
	}
	return e.Err.Error() + ": " + strings.Join(more, ", ")
}

// Unwrap returns the cause.
func (e *DiskFullError) Unwrap() error { return e.Err }

// Advice states where to free space.
func (e *DiskFullError) Advice() string {
	switch d := e.Disk; {
	case d.Mount == "":
		return fmt.Sprintf("find the full file system with `df -h` and `df -i` on %s, free space on it, then run the same command again", e.Host)
	case d.Inodes > 0 && d.InodesFree == 0:
		return fmt.Sprintf("remove files on %s of %s (`du --inodes -x %s | sort -n | tail`), then run the same command again", d.Mount, e.Host, connector.Quote([]string{d.Mount}))
	default:
		return fmt.Sprintf("free space on %s of %s (`du -xh %s | sort -h | tail`), then run the same command again", d.Mount, e.Host, connector.Quote([]string{d.Mount}))
	}
}

// noSpace is the message for ENOSPC of the C library and of Go.
const noSpace = "no space left on device"

// diskQueryTimeout limits the query of the host's free space. It is short because the
// result only adds detail to an error.
const diskQueryTimeout = 15 * time.Second

// ExplainDiskFull returns a *DiskFullError if err was caused by a full file system of
// h, and err unchanged otherwise. It queries the host's free space. Callers call it
// once, after the last retry of a step has failed.
func ExplainDiskFull(ctx context.Context, h *Host, err error) error {
	var full *DiskFullError
	if err == nil || h == nil || h.Runner == nil || errors.As(err, &full) || errors.Is(err, syscall.ENOSPC) { // ENOSPC: a local disk is full, not the host's
		return err
	}
	var cmd *runner.CmdError
	text := err.Error()
	if errors.As(err, &cmd) {
		text += "\n" + cmd.Stderr + "\n" + cmd.Stdout
	}
	if !strings.Contains(strings.ToLower(text), noSpace) {
		return err
	}
	full = &DiskFullError{Host: h.Name, Bundle: h.bundleSize(), Err: err}
	written := ""
	if cmd != nil && strings.HasPrefix(cmd.Verb, "fs.") && len(cmd.Argv) > 0 {
		written = cmd.Argv[0]
		full.File = sizeOf(cmd)
	}
	ctx, cancel := context.WithTimeout(ctx, diskQueryTimeout)
	defer cancel()
	facts, factsErr := h.Runner.Facts(ctx)
	if factsErr != nil {
		return full
	}
	if written != "" {
		full.Disk, _ = facts.Disk(written)
		return full
	}
	full.Disk = fullDisk(facts, writtenTo(text))
	return full
}

// sizeOf returns how many bytes a command writes into files, or 0 if it is not known.
func sizeOf(cmd *runner.CmdError) (size int64) {
	first, every := 1, len(cmd.Argv) // PATH SIZE MODE OWNER
	switch cmd.Verb {
	case connector.VerbWrite:
	case connector.VerbPut: // DIR MODE OWNER, then NAME SIZE SHA256 of each file
		first, every = 4, 3
	default:
		return 0
	}
	for i := first; i < len(cmd.Argv); i += every {
		n, err := strconv.ParseInt(cmd.Argv[i], 10, 64)
		if err != nil {
			return 0
		}
		size += n
	}
	return size
}

// writtenTo returns the last path that text contains before the ENOSPC message, or ""
// if there is none.
func writtenTo(text string) string {
	for line := range strings.Lines(text) {
		before, _, found := strings.Cut(strings.ToLower(line), noSpace)
		if !found {
			continue
		}
		if all := absolute.FindAllStringSubmatch(line[:min(len(before), len(line))], -1); len(all) > 0 {
			return path.Clean(all[len(all)-1][1])
		}
	}
	return ""
}

var absolute = regexp.MustCompile(`(?:^|[\s"'` + "`" + `‘(=])(/[^\s"'` + "`" + `’:;,)]*)`)

// neverWritten are the types of read-only file systems, which are always full, and of
// container file systems, which are stored on another file system.
var neverWritten = []string{"iso9660", "udf", "erofs", "cramfs", "overlay"}

// fullDisk returns the file system that was full when a program wrote to the path
// written. The path may be inside a container, so a full file system of the host takes
// precedence over the path's own.
func fullDisk(facts runner.Facts, written string) runner.Disk {
	named, _ := facts.Disk(written)
	short := slices.DeleteFunc(slices.Clone(facts.Disks), func(d runner.Disk) bool {
		return slices.Contains(neverWritten, d.Type) || d.Free > d.Size/100 && (d.Inodes == 0 || d.InodesFree > 0)
	})
	if len(short) == 0 || slices.ContainsFunc(short, func(d runner.Disk) bool { return d.Mount == named.Mount }) {
		return named
	}
	return short[0]
}

// bundleSize returns the total size of the artifacts that the step declares, from the
// lock.
func (h *Host) bundleSize() int64 {
	if h.Artifacts == nil {
		return 0
	}
	total := int64(0)
	for _, n := range h.meta.Needs {
		if n.Kind != manifest.Image {
			if b, err := h.Lookup(n); err == nil {
				total += b.Size
			}
			continue
		}
		im, err := h.Image(n)
		if err != nil {
			continue
		}
		for _, p := range im.Platforms {
			if p.Platform == h.Platform {
				total += p.Content
			}
		}
	}
	return total
}

// size formats free space and rounds down. sizeUp formats required space and rounds up.
func size(bytes int64) string {
	if bytes < 1<<20 {
		return fmt.Sprintf("%d KiB", bytes>>10)
	}
	return fmt.Sprintf("%d MiB", bytes>>20)
}

func sizeUp(bytes int64) string {
	if bytes > 1<<20-1<<10 {
		return size(bytes + 1<<20 - 1)
	}
	return size(bytes + 1<<10 - 1)
}
