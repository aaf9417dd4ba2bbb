package conntest

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

// disks prints what df says of blocks and of inodes.
func (m *Machine) disks() (blocks, inodes string) {
	blocks = "Filesystem Type 1024-blocks Used Available Capacity Mounted on\n"
	inodes = "Filesystem Inodes IUsed IFree IUse% Mounted on\n"
	free := 6453600
	if m.InodesFree != 0 {
		free = max(m.InodesFree, 0)
	}
	disk := func(device, mount string, mib int) {
		blocks += fmt.Sprintf("%s ext4 %d %d %d 50%% %s\n", device, mib<<11, mib<<10, mib<<10, mount)
		inodes += fmt.Sprintf("%s 6553600 %d %d 2%% %s\n", device, 6553600-free, free, mount)
	}
	disk("/dev/vda1", "/", m.FreeMiB)
	for i, mount := range slices.Sorted(maps.Keys(m.Mounts)) {
		disk(fmt.Sprintf("/dev/vdc%d", i+1), mount, m.Mounts[mount])
	}
	return blocks, inodes
}

// What scriptFacts of the runner looks for.
var (
	traceDirs    = []string{"/etc/kubernetes", "/var/lib/kubelet", "/etc/cni/net.d", "/var/lib/cni"}
	sysctlDirs   = []string{"/etc/sysctl.d", "/run/sysctl.d", "/usr/local/lib/sysctl.d", "/usr/lib/sysctl.d"}
	sysctlLine   = regexp.MustCompile(`^[[:space:]]*-?net[./](ipv[46]|bridge)[./][^=]*=`)
	nodeSysctls  = []string{"fs.inotify.max_user_instances", "fs.inotify.max_user_watches", "net.ipv6.conf.all.disable_ipv6"}
	nodeModules  = []string{"overlay", "br_netfilter", "nf_conntrack", "ip_vs", "ip_vs_rr", "ip_vs_wrr", "ip_vs_sh", "vxlan", "ipip", "wireguard", "dummy", "iscsi_tcp", "nfs"}
	nodeCommands = []string{"conntrack", "ebtables", "ethtool", "ip", "ipset", "iptables", "iscsiadm", "modprobe", "mount", "mount.nfs", "nsenter", "socat", "tar", "tc", "touch"}
	nodeUnits    = []string{"kubelet.service", "chronyd.service", "chrony.service", "ntpd.service", "ntp.service", "ntpsec.service", "openntpd.service", "systemd-timesyncd.service"}
)

// nodeFacts prints the sections that tell what a node has and lacks.
func (s *Sim) nodeFacts(section func(string, string, ...any)) {
	m := s.machine
	var lines []string
	end := func(name string) {
		section(name, "%s", strings.Join(lines, "\n"))
		lines = nil
	}
	for _, a := range m.HostnameAddresses {
		lines = append(lines, a+" STREAM "+s.hostname, a+" DGRAM ")
	}
	end("hostname-addresses")
	for _, name := range nodeUnits {
		load, active, file := "not-found", "inactive", ""
		for _, dir := range unitDirs {
			if s.files.at[dir+"/"+name] != nil {
				load, file = "loaded", dir+"/"+name
				break
			}
		}
		if u := s.units[name]; load == "loaded" && u != nil && u.active {
			active = "active"
		}
		if slices.Contains(m.TimeServices, name) {
			load, active, file = "loaded", "active", "/usr/lib/systemd/system/"+name
		}
		lines = append(lines, "Id="+name, "LoadState="+load, "ActiveState="+active, "FragmentPath="+file)
	}
	end("units")
	for _, p := range m.Processes {
		pid, name, _ := strings.Cut(p, " ")
		lines = append(lines, "/proc/"+pid+"/comm:"+name)
	}
	end("processes")
	for _, p := range slices.Sorted(maps.Keys(s.files.at)) {
		f := s.files.at[p]
		for _, dir := range traceDirs {
			if rest, ok := strings.CutPrefix(p, dir+"/"); ok && f.Mode.IsRegular() && strings.Count(rest, "/") < 2 {
				lines = append(lines, p)
			}
		}
	}
	end("traces")
	for _, name := range nodeModules {
		state := s.modules[name]
		if state == "" {
			state = "absent"
		}
		lines = append(lines, name+" "+state)
	}
	end("modules")
	for _, c := range nodeCommands {
		if !slices.Contains(m.NoCommands, c) {
			lines = append(lines, c)
		}
	}
	end("commands")
	for _, k := range nodeSysctls {
		if v, ok := s.sysctls[k]; ok {
			lines = append(lines, strings.ReplaceAll(k, ".", "/")+" "+v)
		}
	}
	end("sysctls")
	for _, p := range slices.Sorted(maps.Keys(s.files.at)) {
		if p != "/etc/sysctl.conf" && (!slices.Contains(sysctlDirs, path.Dir(p)) || path.Ext(p) != ".conf") {
			continue
		}
		for l := range strings.Lines(string(s.files.at[p].Data)) {
			if sysctlLine.MatchString(l) {
				lines = append(lines, p+":"+strings.TrimSuffix(l, "\n"))
			}
		}
	}
	end("sysctl-files")
	for _, p := range m.Held {
		lines = append(lines, "hold "+p)
	}
	end("held")
}
