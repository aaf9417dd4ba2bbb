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

// DiskFullError is an error of a step that met a full file system on its host.
type DiskFullError struct {
	Host string
	// Disk is the file system as it was after the failure; its Mount is "" where
	// none could be named.
	Disk runner.Disk
	// File is the size in bytes of the file that was written, 0 where it is not known.
	File int64
	// Bundle is the size in bytes, in the bundle, of all files and images that the
	// step brings to the host; images take more room unpacked. 0: none are known.
	Bundle int64
	Err    error
}

// Error adds to the cause what is free, and what is needed.
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
		more = append(more, "the step brings "+sizeUp(e.Bundle)+" of the bundle in all")
	}
	if len(more) == 0 {
		return e.Err.Error()
	}
	return e.Err.Error() + ": " + strings.Join(more, ", ")
}

// Unwrap gives the cause.
func (e *DiskFullError) Unwrap() error { return e.Err }

// Advice says where to free space.
func (e *DiskFullError) Advice() string {
	switch d := e.Disk; {
	case d.Mount == "":
		return fmt.Sprintf("see `df -h` and `df -i` on %s, free space where it is short, then run the same command again", e.Host)
	case d.Inodes > 0 && d.InodesFree == 0:
		return fmt.Sprintf("remove files on %s of %s (`du --inodes -x %s | sort -n | tail`), then run the same command again", d.Mount, e.Host, connector.Quote([]string{d.Mount}))
	default:
		return fmt.Sprintf("free space on %s of %s (`du -xh %s | sort -h | tail`), then run the same command again", d.Mount, e.Host, connector.Quote([]string{d.Mount}))
	}
}

// noSpace is what programs say of ENOSPC: the C library's text, and Go's.
const noSpace = "no space left on device"

// askDisks is how long a host may take to say what is free: the answer only adds
// to an error.
const askDisks = 15 * time.Second

// ExplainDiskFull gives a *DiskFullError for an error that comes from a full file
// system of h, and any other error as it is. It asks the host what is free; the
// caller calls it once, where a step has failed for good.
func ExplainDiskFull(ctx context.Context, h *Host, err error) error {
	var full *DiskFullError
	if err == nil || h == nil || h.Runner == nil || errors.As(err, &full) || errors.Is(err, syscall.ENOSPC) { // the last: this machine's disk
		return err
	}
	var cmd *runner.CmdError
	said := err.Error()
	if errors.As(err, &cmd) {
		said += "\n" + cmd.Stderr + "\n" + cmd.Stdout
	}
	if !strings.Contains(strings.ToLower(said), noSpace) {
		return err
	}
	full = &DiskFullError{Host: h.Name, Bundle: h.bundleSize(), Err: err}
	written := ""
	if cmd != nil && strings.HasPrefix(cmd.Verb, "fs.") && len(cmd.Argv) > 0 {
		written = cmd.Argv[0]
		if (cmd.Verb == connector.VerbPut || cmd.Verb == connector.VerbWrite) && len(cmd.Argv) > 1 {
			full.File, _ = strconv.ParseInt(cmd.Argv[1], 10, 64) // 0 where it is no number
		}
	}
	ctx, cancel := context.WithTimeout(ctx, askDisks)
	defer cancel()
	facts, asked := h.Runner.Facts(ctx)
	if asked != nil {
		return full
	}
	if written != "" {
		full.Disk, _ = facts.Disk(written)
		return full
	}
	full.Disk = fullDisk(facts, writtenTo(said))
	return full
}

// writtenTo gives the path that a text names last before it says that there was no
// space; "" where it names none.
func writtenTo(said string) string {
	for line := range strings.Lines(said) {
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

// neverWritten are file systems that are full by nature, and those of containers,
// which lie on another one.
var neverWritten = []string{"iso9660", "udf", "erofs", "cramfs", "overlay"}

// fullDisk gives the file system that a program met full. The path that it named may
// be one of its container's: a file system that is full goes before it.
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

// bundleSize is the size of what a step declares to bring to h, as the lock has it.
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

// size rounds down, for what is free; sizeUp rounds up, for what is needed.
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
