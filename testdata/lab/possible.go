package lab

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
)

// programs are what a lab calls, with Debian's packages of them.
var programs = map[string]string{
	"ip": "iproute2", "nft": "nftables", "tcpdump": "tcpdump", "ssh": "openssh-client", "ssh-keygen": "openssh-client",
	"mmdebstrap": "mmdebstrap", "mkfs.ext4": "e2fsprogs", "unshare": "util-linux", "nsenter": "util-linux", "sysctl": "procps",
	"depmod": "kmod", "mkfs.xfs": "xfsprogs", "mount": "mount", "fsfreeze": "util-linux",
}

// Possible gives the reason why no lab can go up here, or nil.
func Possible() error {
	if runtime.GOOS != "linux" {
		return fmt.Errorf("a lab needs Linux; this is %s", runtime.GOOS)
	}
	if os.Geteuid() != 0 {
		return errors.New("a lab needs root, to make namespaces and mounts")
	}
	if _, err := os.Stat("/sys/fs/cgroup/systemd"); err != nil {
		return errors.New("a lab needs control groups of version 1 on this machine, one hierarchy per controller")
	}
	return has(programs, "a lab needs")
}

// has gives an error that names the packages of programs that are missing.
func has(programs map[string]string, who string) error {
	var lacking []string
	for program, packaged := range programs {
		if _, err := exec.LookPath(program); err != nil {
			lacking = append(lacking, packaged)
		}
	}
	if len(lacking) > 0 {
		return fmt.Errorf("%s programs that are missing: apt-get install %s", who, strings.Join(sorted(lacking), " "))
	}
	return nil
}

// possible gives the reason why the hosts that o asks for cannot go up here, or nil.
func (o *Options) possible() error {
	if err := Possible(); err != nil {
		return err
	}
	if slices.Contains(o.Roots, MachineARM64) {
		if err := has(armPrograms, "an emulated machine of arm64 needs"); err != nil {
			return err
		}
	}
	if slices.ContainsFunc(o.Roots, func(root string) bool { return slices.Contains(Machines, root) }) {
		return has(machinePrograms, "an emulated machine needs")
	}
	return nil
}
