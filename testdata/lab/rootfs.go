package lab

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"
)

//go:embed rootfs.sh
var rootfsScript []byte

// Rootfs gives the folder that holds the hosts' root file system; the disk
// that hosts get a copy of is beside it, with .img at its end. It makes both
// unless the cache has them.
func Rootfs(ctx context.Context, cache string, log *slog.Logger) (string, error) {
	kernel, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return "", err
	}
	h := sha256.New()
	h.Write(rootfsScript)
	h.Write(kernel)
	dir := filepath.Join(cache, "rootfs", fmt.Sprintf("%x", h.Sum(nil)[:6]))
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", err
	}
	lock := flock.New(filepath.Join(cache, "rootfs", ".lock"))
	if _, err := lock.TryLockContext(ctx, time.Second); err != nil {
		return "", fmt.Errorf("wait for another one: %w", err)
	}
	defer lock.Unlock() //nolint:errcheck // nothing is left to do
	if _, err := os.Stat(dir + ".img"); err == nil {
		return dir, nil
	}
	log.InfoContext(ctx, "making the hosts' root file system, which takes minutes", "dir", dir)
	cmd := exec.CommandContext(ctx, "nice", "-n", "10", "bash", "-s", dir)
	cmd.Stdin = strings.NewReader(string(rootfsScript))
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s (%w)", lastLines(out, 5), err)
	}
	return dir, nil
}

// lastLines gives the end of what a command said.
func lastLines(out []byte, n int) string {
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
