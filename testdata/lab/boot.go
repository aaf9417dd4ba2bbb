package lab

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

//go:embed host.sh
var hostScript []byte

// bootTime is how long a host may take until systemd has started everything.
const bootTime = 2 * time.Minute

// makeKeys makes the key that people come in with, one for each host, and the
// known_hosts file.
func (l *Lab) makeKeys(ctx context.Context) error {
	dir := filepath.Join(l.Dir, "ssh")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	keygen := func(file string) error {
		return command(ctx, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "lab "+l.Name, "-f", file)
	}
	if err := keygen(l.Key()); err != nil {
		return err
	}
	var known strings.Builder
	for _, h := range l.Hosts {
		file := filepath.Join(dir, "host-"+h.Name)
		if err := keygen(file); err != nil {
			return err
		}
		public, err := os.ReadFile(file + ".pub")
		if err != nil {
			return err
		}
		fields := strings.Fields(string(public))
		fmt.Fprintf(&known, "%s,%s,%s %s %s\n", h.Name, h.Address, h.Address6, fields[0], fields[1])
	}
	return os.WriteFile(l.KnownHosts(), []byte(known.String()), 0o644)
}

// boot gives every host a disk with its own files on it, and starts it.
func (l *Lab) boot(ctx context.Context) error {
	if err := os.WriteFile(l.script(), hostScript, 0o644); err != nil {
		return err
	}
	for i := range l.Hosts {
		h := &l.Hosts[i]
		dir := l.hostDir(h)
		if err := os.MkdirAll(filepath.Join(dir, "root"), 0o755); err != nil {
			return err
		}
		image, err := l.image(ctx, h)
		if err != nil {
			return err
		}
		if err := copyDisk(ctx, image, l.disk(h)); err != nil {
			return err
		}
		if err := l.seed(h); err != nil {
			return fmt.Errorf("host %s: %w", h.Name, err)
		}
		if err := l.startHost(ctx, h); err != nil {
			return fmt.Errorf("host %s: %w", h.Name, err)
		}
	}
	return nil
}

func (l *Lab) script() string { return filepath.Join(l.Dir, "host.sh") }

func (l *Lab) hostDir(h *Host) string { return filepath.Join(l.Dir, "hosts", h.Name) }

func (l *Lab) disk(h *Host) string { return filepath.Join(l.hostDir(h), "disk.img") }

// seeded is a file that is a host's own.
type seeded struct {
	path    string
	content string
	mode    os.FileMode
	folder  os.FileMode
}

// seed writes the files that are the host's own.
func (l *Lab) seed(h *Host) error {
	top := filepath.Join(l.hostDir(h), "seed")
	public, err := os.ReadFile(l.Key() + ".pub")
	if err != nil {
		return err
	}
	id, err := os.ReadFile("/proc/sys/kernel/random/uuid")
	if err != nil {
		return err
	}
	hostKey, err := os.ReadFile(filepath.Join(l.Dir, "ssh", "host-"+h.Name))
	if err != nil {
		return err
	}
	for _, f := range append(l.furnish(h), []seeded{
		{"etc/hostname", h.Name + "\n", 0o644, 0o755},
		{"etc/hosts", "127.0.0.1 localhost\n::1 localhost\n127.0.1.1 " + h.Name + "\n", 0o644, 0o755},
		{"etc/resolv.conf", l.resolver(), 0o644, 0o755},
		{"etc/machine-id", strings.ReplaceAll(string(id), "-", ""), 0o444, 0o755},
		{"etc/ssh/ssh_host_ed25519_key", string(hostKey), 0o600, 0o755},
		{"root/.ssh/authorized_keys", string(public), 0o600, 0o700},
		{"etc/ssh/authorized/ops", string(public), 0o644, 0o755},
		{"etc/ssh/sshd_config.d/keys.conf", "AuthorizedKeysFile .ssh/authorized_keys /etc/ssh/authorized/%u\n" +
			"Match Address " + l.address(askerNumber) + "\n\tMaxSessions 100\nMatch all\n", 0o644, 0o755},
	}...) {
		path := filepath.Join(top, f.path)
		if err := os.MkdirAll(filepath.Dir(path), f.folder); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(f.content), f.mode); err != nil {
			return err
		}
	}
	return os.Chmod(filepath.Join(top, "root"), 0o700) //nolint:gosec // root's home is its own
}

// startHost makes the host's control groups and starts it in them.
func (l *Lab) startHost(ctx context.Context, h *Host) error {
	if h.emulated() {
		return l.startMachine(ctx, h)
	}
	dirs, err := l.makeCgroups(h.Name)
	if err != nil {
		return err
	}
	// It outlives this process, and ends by Down.
	cmd := exec.Command("bash", l.script())
	dir := l.hostDir(h)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(),
		"LAB_HOST="+h.Name, "LAB_DIR="+dir, "LAB_NETNS="+l.netns(h.Name),
		"LAB_CGROUPS="+strings.Join(dirs, " "), "LAB_CONTROLLERS="+strings.Join(controllers, " "), "LAB_INIT="+initArgs[h.Root])
	holder, err := start(cmd, filepath.Join(dir, "console"))
	l.mu.Lock()
	defer l.mu.Unlock()
	h.Holder = holder
	return err
}

// wait returns when ssh answers on every host and systemd has started all.
func (l *Lab) wait(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, l.patience())
	defer cancel()
	g, ctx := errgroup.WithContext(ctx)
	for i := range l.Hosts {
		g.Go(func() error { return l.waitHost(ctx, &l.Hosts[i], nil) })
	}
	return g.Wait()
}

// waitHost waits for one host. What failed on it while it started is an error, or is
// handed to failed where that is given.
func (l *Lab) waitHost(ctx context.Context, h *Host, failed func(units string)) error {
	begun := time.Now()
	for {
		out, err := l.ssh(ctx, h, RootUser, "", "systemctl is-system-running --wait; systemctl --failed --plain --no-legend").CombinedOutput()
		said := strings.TrimSpace(string(out))
		switch {
		case strings.HasPrefix(said, "running"):
			l.log.DebugContext(ctx, "host is up", "host", h.Name, "took", time.Since(begun).Round(10*time.Millisecond))
			return nil
		case strings.HasPrefix(said, "degraded") && failed != nil:
			failed(strings.TrimSpace(strings.TrimPrefix(said, "degraded")))
			return nil
		case strings.HasPrefix(said, "degraded"):
			return fmt.Errorf("host %s: some units failed: %s", h.Name, strings.TrimPrefix(said, "degraded"))
		case !h.Holder.alive():
			console, _ := os.ReadFile(filepath.Join(l.hostDir(h), "console"))
			return fmt.Errorf("host %s ended while it booted: %s", h.Name, lastLines(console, 5))
		case h.emulated() && l.panicked(h):
			console, _ := os.ReadFile(filepath.Join(l.hostDir(h), "console"))
			return fmt.Errorf("host %s: its kernel gave up: %s", h.Name, lastLines(console, 30))
		case ctx.Err() != nil:
			return fmt.Errorf("host %s: not up within %s: %s (%w)", h.Name, l.patience(), said, err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}
