package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A host whose root is one of Machines is a machine in software: qemu, which makes up
// each instruction, runs a kernel of the distribution's own with a disk and a network
// card. The disk is a file as that of other hosts is, and the card's other end is a
// port of the lab's bridge, with the name that a namespace's would have.
//
// It shows what hosts that share this machine's kernel cannot: control groups of
// version 2, modules, a real restart. It computes at about a tenth of the speed.

// Of one machine. It has two processors because kubeadm wants as many.
const (
	machineProcessors = 2
	machineMemory     = 3584 // MiB
)

// processor is the one that qemu knows best, without the instructions that qemu takes
// apart into single additions: programs that find none have quicker ways. Of Go's,
// SHA-256 and ECDSA take half the time without, and unpacking less than that. All that
// came after SSSE3 with vectors in them are off too: libcrypto and the kernel take AES
// and SHA instructions to say that SSSE3 is there, and die of an invalid opcode.
const processor = "max,ssse3=off,sse4.1=off,sse4.2=off,avx=off,avx2=off,fma=off,f16c=off," +
	"aes=off,pclmulqdq=off,sha-ni=off,vaes=off,vpclmulqdq=off,gfni=off"

// armProcessor is without the instructions that sign pointers, which qemu takes long for.
const armProcessor = "max,pauth=off"

// machineBootTime is how long a machine may take to start everything: 25 to 40 seconds
// where little else runs on two processors, and many times that beside compilers.
const machineBootTime = 10 * time.Minute

// machinePrograms are what machines need in addition, with Debian's packages of them.
var machinePrograms = map[string]string{"qemu-system-x86_64": "qemu-system-x86", "busybox": "busybox-static", "cpio": "cpio", "dpkg-deb": "dpkg"}

// armPrograms are what machines of another architecture need in addition, and what is built for them.
var armPrograms = map[string]string{"qemu-system-aarch64": "qemu-system-arm", "aarch64-linux-gnu-gcc": "gcc-aarch64-linux-gnu"}

// emulated reports whether a host is a machine in software.
func (h *Host) emulated() bool { return slices.Contains(Machines, h.Root) }

// slowness is how much longer than another a host may take to answer.
func (h *Host) slowness() int {
	if h.emulated() {
		return 10
	}
	return 1
}

// slowness is that of the slowest host.
func (l *Lab) slowness() int {
	n := 1
	for i := range l.Hosts {
		n = max(n, l.Hosts[i].slowness())
	}
	return n
}

// patience is how long hosts may take to start.
func (l *Lab) patience() time.Duration {
	if slices.ContainsFunc(l.Hosts, func(h Host) bool { return h.emulated() }) {
		return machineBootTime
	}
	return bootTime
}

// plugMachine makes the port that a machine's network card is plugged into.
func (l *Lab) plugMachine(b *batch, name string) {
	b.add("-n %s tuntap add dev v%s mode tap", l.netns(""), name)
	b.add("-n %s link set v%s master %s up", l.netns(""), name, bridge)
}

// sow writes the host's own files onto its disk, before its first start.
func (l *Lab) sow(ctx context.Context, h *Host) error {
	dir := l.hostDir(h)
	seed := filepath.Join(dir, "seed")
	if _, err := os.Stat(seed); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	// The mount goes with the namespace, and the loop device with the mount.
	const script = `mount -o loop,noatime "$1" "$2" && cp -a "$3/." "$2/"`
	err := command(ctx, "unshare", "--mount", "--propagation", "private", "bash", "-c", script, "bash", l.disk(h), filepath.Join(dir, "root"), seed)
	return errors.Join(err, released(l.disk(h)))
}

// startMachine starts a machine with the disk that it has. It outlives this process,
// and ends by Cut or Down: when its kernel restarts, the same process goes on.
func (l *Lab) startMachine(ctx context.Context, h *Host) error {
	if err := l.sow(ctx, h); err != nil {
		return err
	}
	cmd := exec.Command("ip", l.machineArgs(h)...)
	cmd.Dir = l.hostDir(h)
	holder, err := start(cmd, filepath.Join(l.hostDir(h), "console"))
	l.mu.Lock()
	defer l.mu.Unlock()
	h.Holder = holder
	return err
}

// machineArgs are the arguments of a machine's process.
func (l *Lab) machineArgs(h *Host) []string {
	qemu, kind, console := "qemu-system-x86_64", []string{"-cpu", processor}, "ttyS0"
	if h.Root == MachineARM64 {
		qemu, kind, console = "qemu-system-aarch64", []string{"-M", "virt", "-cpu", armProcessor}, "ttyAMA0"
	}
	line := []string{
		"console=" + console, "quiet", "net.ifnames=0",
		"lab.address=" + h.Address + "/24", "lab.address6=" + h.Address6 + "/64",
		"lab.gateway=" + l.Gateway(), "lab.gateway6=" + l.address6(gatewayNumber),
	}
	return append(append([]string{"netns", "exec", l.netns(""), qemu, "-name", l.Name + "-" + h.Name}, kind...),
		"-nodefaults", "-no-user-config", "-display", "none", "-serial", "stdio",
		"-accel", "tcg,thread=multi", "-smp", fmt.Sprint(machineProcessors), "-m", fmt.Sprint(machineMemory),
		"-kernel", h.Rootfs+".kernel", "-initrd", h.Rootfs+".initrd", "-append", strings.Join(line, " "),
		// What the machine has written is in this machine's memory when the process is
		// killed, so nothing is lost that was on its disk, and it need not wait for ours.
		"-drive", "file="+l.disk(h)+",format=raw,if=virtio,cache=unsafe,discard=unmap",
		"-netdev", "tap,id=net,ifname=v"+h.Name+",script=no,downscript=no", "-device", "virtio-net-pci,netdev=net,mac="+h.MAC)
}

// Reboot has a machine restart by itself, and returns when it is up again.
func (l *Lab) Reboot(ctx context.Context, h *Host) error {
	if !h.emulated() {
		return fmt.Errorf("host %s has this machine's kernel, which does not restart: see Cut and Boot", h.Name)
	}
	const life = "cat /proc/sys/kernel/random/boot_id"
	before, err := l.SSH(ctx, h, RootUser, life).Output()
	if err != nil {
		return fmt.Errorf("restart %s: %w", h.Name, err)
	}
	// The connection may end before the command has.
	_ = l.SSH(ctx, h, RootUser, "systemctl reboot").Run()
	ctx, cancel := context.WithTimeout(ctx, l.patience())
	defer cancel()
	for {
		l.hangUp(ctx, h)
		now, err := l.SSH(ctx, h, RootUser, life).Output()
		if err == nil && !bytes.Equal(now, before) {
			return l.waitHost(ctx, h, l.tell(ctx, h))
		}
		if ctx.Err() != nil {
			return fmt.Errorf("restart %s: not up again within %s: %w", h.Name, l.patience(), err)
		}
		time.Sleep(500 * time.Millisecond)
	}
}

// panicked reports whether a machine's kernel has given up since the machine started.
func (l *Lab) panicked(h *Host) bool {
	console, err := os.ReadFile(filepath.Join(l.hostDir(h), "console"))
	return err == nil && bytes.Contains(console, []byte("Kernel panic - "))
}

// connection is NetworkManager's of a host's network card. Its name server is one that
// does not answer, so that it is told from any that is set later.
const connection = `[connection]
id=eth0
type=ethernet
interface-name=eth0

[ipv4]
method=manual
address1=%[1]s/24,%[2]s
dns=%[5]s;

[ipv6]
method=manual
address1=%[3]s/64,%[4]s
`

// furnish gives the files of a host that NetworkManager looks after.
func (l *Lab) furnish(h *Host) []seeded {
	if h.Root != Furnished {
		return nil
	}
	text := fmt.Sprintf(connection, h.Address, l.Gateway(), h.Address6, l.address6(gatewayNumber), l.Elsewhere().Address)
	return []seeded{{"etc/NetworkManager/system-connections/eth0.nmconnection", text, 0o600, 0o755}}
}
