package runner_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/connector/local"
	"github.com/mensylisir/kubexm/steps/runner/runnertest"
)

// ownMachine is this machine with fake global settings, which a test must not change: its
// own host name, files for swap and SELinux, and fake swapon, swapoff and ufw. The scripts
// are the real ones. Each command runs in new namespaces, so the host name is set before
// it and saved after it.
type ownMachine struct {
	connector.Conn
	dir string
}

func (m ownMachine) Exec(ctx context.Context, c connector.Cmd) (connector.Result, error) {
	c.Argv = append([]string{"unshare", "--mount", "--uts", "/bin/sh", m.dir + "/enter", m.dir}, c.Argv...)
	return m.Conn.Exec(ctx, c)
}

// heading is the header of /proc/swaps.
const heading = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"

var machineFiles = map[string]string{
	"enter": `set -eu
d=$1; shift
mount --make-rprivate /
mount -t tmpfs none /sys/fs
mkdir /sys/fs/selinux
cp "$d/enforce" /sys/fs/selinux/enforce
mount --bind "$d/swaps" /proc/swaps
cat "$d/name" >/proc/sys/kernel/hostname
PATH=$d/bin:$PATH; export PATH
set +e
"$@"; e=$?
cat /sys/fs/selinux/enforce >"$d/enforce"
cat /proc/sys/kernel/hostname >"$d/name"
exit "$e"
`,
	"enforce": "1",
	"name":    "suite\n",
	"swaps":   heading + `/kubexm/a\040swap                       file		1048572		0		5` + "\n",
	"ufw":     "active\n",
	// Only the one area is there. cat keeps the file, which is bound elsewhere.
	"bin/swapoff": `#!/bin/sh
[ "$1" = -- ] && [ "$2" = "/kubexm/a swap" ] && grep -q kubexm DIR/swaps || { echo "swapoff: $2: Invalid argument" >&2; exit 4; }
printf 'Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n' >DIR/swaps
`,
	"bin/swapon": `#!/bin/sh
p=-2
if [ "$1" = -p ]; then p=$2; shift 2; fi
[ "$1" = -- ] && [ "$2" = "/kubexm/a swap" ] || { echo "swapon: cannot open $2" >&2; exit 255; }
printf '/kubexm/a\\040swap file\t\t1048572\t\t0\t\t%s\n' "$p" >>DIR/swaps
`,
	"bin/ufw": `#!/bin/sh
case "$*" in
status) echo "Status: $(cat DIR/ufw)" ;;
disable) echo inactive >DIR/ufw ;;
"--force enable") echo active >DIR/ufw ;;
*) exit 2 ;;
esac
`,
}

// TestSuiteOnAMachineOfItsOwn runs the real scripts for global settings of a machine.
func TestSuiteOnAMachineOfItsOwn(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("namespaces and mounts are root's to make")
	}
	if out, err := exec.CommandContext(t.Context(), "unshare", "--mount", "--uts", "/bin/sh", "-c", "mount --make-rprivate / && mount -t tmpfs none /sys/fs").CombinedOutput(); err != nil {
		t.Skipf("no namespaces here: %v: %s", err, out)
	}
	runnertest.Machine(t, func(t *testing.T) runnertest.Host {
		dir := t.TempDir()
		if err := os.Mkdir(filepath.Join(dir, "bin"), 0o755); err != nil {
			t.Fatal(err)
		}
		for name, text := range machineFiles {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(strings.ReplaceAll(text, "DIR", dir)), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		return runnertest.Host{Conn: ownMachine{local.New(local.Config{}), dir}, Dir: dir, Root: true, Machine: true}
	})
}
