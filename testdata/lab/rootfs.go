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
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/mensylisir/kubexm/testdata/lab/repack"
)

// The roots that hosts may have.
const (
	Debian12 = "debian-12" // what hosts have where nothing is said
	Debian13 = "debian-13"
	RPM      = "rpm" // the lab's own distribution, see repack
	// Machine is a Debian 12 with a kernel of its own, and makes its host an emulated
	// machine, see machine.go.
	Machine = "machine"
	// Furnished is a Machine with what sites have on their hosts, and Kubernetes has to
	// get along with: firewalld, NetworkManager, systemd-resolved and systemd-timesyncd.
	Furnished = "furnished"
	// MachineARM64 is a Machine with another processor.
	MachineARM64 = "machine-arm64"
	// Balancer is a Debian 12 with haproxy: a load balancer that exists at a site.
	Balancer = "balancer"
)

// Roots are those of hosts that may become nodes, and share this machine's kernel.
var Roots = []string{Debian12, Debian13, RPM}

// Machines are those of emulated machines.
var Machines = []string{Machine, Furnished, MachineARM64}

// AllRoots are all that there are.
var AllRoots = slices.Concat(Roots, Machines, []string{Balancer})

// furniture are the packages that a root has in addition. What the lab builds for another
// architecture needs its library.
var furniture = map[string]string{Furnished: "firewalld,network-manager,systemd-resolved,systemd-timesyncd", Balancer: "haproxy", MachineARM64: "libseccomp-dev"}

// suites are Debian's releases.
var suites = map[string]string{Debian12: "bookworm", Debian13: "trixie", Machine: "bookworm", Furnished: "bookworm", MachineARM64: "bookworm", Balancer: "bookworm"}

// kernelPackage depends on the package of the kernel that emulated machines have:
// Debian's, without the drivers of hardware that no virtual machine has.
const kernelPackage = "linux-image-cloud-amd64"

// initArgs are what a root's init is started with: systemd takes them, in a
// container, for the kernel's. Since release 256 it has to be told twice to do with
// control groups of version 1.
var initArgs = map[string]string{Debian13: "SYSTEMD_CGROUP_ENABLE_LEGACY_FORCE=1 systemd.unified_cgroup_hierarchy=0"}

var (
	//go:embed rootfs.sh
	debianScript string
	//go:embed rootfs-site.sh
	siteScript string
	//go:embed rootfs-lab.sh
	labScript string
	//go:embed rootfs-arm64.sh
	arm64Script string
	//go:embed rootfs-machine.sh
	machineScript string
	//go:embed rootfs-disk.sh
	diskScript string
)

// Rootfs gives the folder that holds the root file system of a host with that root
// ("" is Debian12); the disk that hosts get a copy of is beside it, with .img at
// its end, and RPM's repository with .rpms. It makes them unless the cache has them.
func Rootfs(ctx context.Context, cache, root string, log *slog.Logger) (string, error) {
	if root == "" {
		root = Debian12
	}
	if !slices.Contains(AllRoots, root) {
		return "", fmt.Errorf("no root %q; there are %s", root, strings.Join(AllRoots, ", "))
	}
	dir, err := rootDir(cache, root)
	if err != nil {
		return "", err
	}
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
	log.InfoContext(ctx, "making the hosts' root file system, which takes minutes", "root", root, "dir", dir)
	if err := makeRoot(ctx, root, dir); err != nil {
		return "", fmt.Errorf("%s: %w", root, err)
	}
	return dir, nil
}

// rootDir names the folder after all that decides what is in it.
func rootDir(cache, root string) (string, error) {
	kernel, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return "", err
	}
	key := debianScript + suites[root] + furniture[root]
	if root == RPM {
		if key, err = repack.Key(); err != nil {
			return "", err
		}
	}
	if key += after(root); !slices.Contains(Machines, root) {
		key += string(kernel)
	}
	sum := sha256.Sum256([]byte(key))
	return filepath.Join(cache, "rootfs", fmt.Sprintf("%s-%x", root, sum[:6])), nil
}

// after is the script that makes a host of a distribution.
func after(root string) string {
	switch {
	case root == MachineARM64:
		return siteScript + arm64Script + machineScript + diskScript
	case slices.Contains(Machines, root):
		return siteScript + machineScript + diskScript
	}
	return siteScript + labScript + diskScript
}

func makeRoot(ctx context.Context, root, dir string) error {
	args := []string{"-n", "10", "bash", "-s", dir, suites[root]}
	script := debianScript + after(root)
	switch {
	case root == RPM:
		if err := repack.Make(ctx, dir); err != nil {
			return err
		}
		script = "set -euo pipefail\nout=$1\n" + after(root)
	case slices.Contains(Machines, root) && root != MachineARM64:
		args = append(args, furniture[root], kernelPackage)
	case furniture[root] != "":
		args = append(args, furniture[root])
	}
	cmd := exec.CommandContext(ctx, "nice", args...)
	cmd.Stdin = strings.NewReader(script)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s (%w)", lastLines(out, 5), err)
	}
	return nil
}

// lastLines gives the end of what a command said.
func lastLines(out []byte, n int) string {
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
