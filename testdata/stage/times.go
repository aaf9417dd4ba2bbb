package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// epoch is the earliest time that Times sets. The latest is about 16 years later.
var epoch = time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC)

// Times sets the modification time of each file and folder that git finds unmodified to a
// value that depends only on its content.
//
// Go's test cache identifies the files that a test has opened by size and modification time. A
// clone gives every file the time of the clone, so that no result could be reused. The time of
// the last commit of a file is not suitable: a shallow clone does not have it, and two commits
// may have the same second. The digest of the content is always available, and different
// content has a different time.
func Times(ctx context.Context, dir string) error {
	root, err := git(ctx, dir, "rev-parse", "--show-toplevel")
	if err != nil {
		return err
	}
	dir = strings.TrimSpace(string(root))
	// Symbolic links have the content of the files that they refer to, so they count as
	// modified if these are.
	changed, err := git(ctx, dir, "status", "--porcelain", "-z", "--no-renames", "--untracked-files=no")
	if err != nil {
		return err
	}
	skip := map[string]bool{}
	for _, line := range fields(changed) {
		name := line[min(3, len(line)):]
		for ; name != "."; name = filepath.Dir(name) {
			skip[name] = true
		}
		skip["."] = true
	}
	tree, err := git(ctx, dir, "ls-tree", "-r", "-t", "-z", "HEAD")
	if err != nil {
		return err
	}
	for _, line := range fields(tree) {
		// mode SP type SP digest TAB name
		meta, name, ok := strings.Cut(line, "\t")
		parts := strings.Fields(meta)
		if !ok || len(parts) != 3 {
			return fmt.Errorf("git ls-tree: unexpected line %q", line)
		}
		if skip[name] || parts[0] == "120000" || parts[1] == "commit" {
			continue
		}
		at, err := timeOf(parts[2])
		if err != nil {
			return err
		}
		if err := os.Chtimes(filepath.Join(dir, filepath.FromSlash(name)), at, at); err != nil {
			return err
		}
	}
	// git also checks these times, and would otherwise read every file again each time.
	_, err = git(ctx, dir, "update-index", "-q", "--refresh")
	return err
}

// timeOf derives a time from a digest in hexadecimal.
func timeOf(digest string) (time.Time, error) {
	b, err := hex.DecodeString(digest)
	if err != nil || len(b) < 8 {
		return time.Time{}, fmt.Errorf("git returned %q as a digest", digest)
	}
	seconds, nanoseconds := binary.BigEndian.Uint32(b)>>3, binary.BigEndian.Uint32(b[4:])
	return epoch.Add(time.Duration(seconds)*time.Second + time.Duration(nanoseconds%1e9)), nil
}

func git(ctx context.Context, dir string, args ...string) ([]byte, error) {
	c := exec.CommandContext(ctx, "git", append([]string{"-C", dir}, args...)...)
	var stderr bytes.Buffer
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("git %s: %w: %s", args[0], err, bytes.TrimSpace(stderr.Bytes()))
	}
	return out, nil
}

// fields splits the output of git -z.
func fields(b []byte) []string {
	return strings.FieldsFunc(string(b), func(r rune) bool { return r == 0 })
}
