package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// written are the paths that parts write in the tree: running a part must not make the others
// run again.
const written = "testdata/e2e/shown.json"

// treeOf returns a digest of all files of a checkout, committed or not.
func treeOf(ctx context.Context, root string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git ls-files: %w", err)
	}
	h := sha256.New()
	for name := range strings.SplitSeq(string(out), "\x00") {
		if name == "" || name == written {
			continue
		}
		path := filepath.Join(root, name)
		st, err := os.Lstat(path)
		if errors.Is(err, fs.ErrNotExist) { // removed, and not yet committed
			continue
		}
		if err != nil {
			return "", err
		}
		var b []byte
		if st.Mode()&fs.ModeSymlink != 0 {
			target, err := os.Readlink(path)
			if err != nil {
				return "", err
			}
			b = []byte(target)
		} else if b, err = os.ReadFile(path); err != nil {
			return "", err
		}
		fmt.Fprintf(h, "%s %o %d\n", name, st.Mode(), len(b))
		_, _ = h.Write(b) // writing to a hash never fails
	}
	return hex.EncodeToString(h.Sum(nil))[:16], nil
}
