package runner

import (
	"bytes"
	"errors"
	"strconv"
	"strings"
	"time"
)

// ParseFacts parses the output of scriptFacts. Sections may have any order, and may be
// missing or empty. Lines that cannot be parsed are skipped. Only output without the
// final section is an error: it is truncated, or not from scriptFacts.
func ParseFacts(b []byte) (Facts, error) {
	sec := sections(b)
	if _, complete := sec["end"]; !complete {
		return Facts{}, errors.New("facts: the output is truncated")
	}
	f := Facts{
		OS:          parseOSRelease(sec["os-release"]),
		Machine:     first(sec["machine"]),
		Kernel:      first(sec["kernel"]),
		Hostname:    first(sec["hostname"]),
		MachineID:   first(sec["machine-id"]),
		ProductUUID: strings.ToLower(first(sec["product-uuid"])),
		BootID:      first(sec["boot-id"]),
		CPUs:        int(number(first(sec["cpus"]))),
		Swaps:       parseSwaps(sec["swaps"]),
		CgroupV2:    first(sec["cgroup"]) == "cgroup2fs",
		SELinux:     parseSELinux(first(sec["selinux"])),
		AppArmor:    first(sec["apparmor"]) == "Y",
		Firewalls:   strings.Fields(strings.Join(sec["firewall"], " ")),
		Virt:        first(sec["virt"]),
		Resolv:      parseResolv(first(sec["resolv-link"]), sec["resolv"]),
		Disks:       parseDisks(sec["disks"], sec["inodes"]),
		Interfaces:  parseInterfaces(sec["links"], sec["addresses"]),
		Ports:       parsePorts(sec["ports"]),

		HostnameAddresses: parseAhosts(sec["hostname-addresses"]),
		Units:             parseUnits(sec["units"]),
		Processes:         parseProcesses(sec["processes"]),
		Traces:            sec["traces"],
		Modules:           parseModules(sec["modules"]),
		Commands:          sec["commands"],
		Sysctls:           parseSysctls(sec["sysctls"]),
		SysctlFiles:       parseSysctlFiles(sec["sysctl-files"]),
		Held:              parseHeld(sec["held"]),
	}
	if lines, ok := sec["resolv-file"]; ok {
		f.Resolv.Missing = len(lines) == 0
	}
	f.Resolv.Upstream = parseResolv("", sec["resolv-real"]).Nameservers
	f.Arch = goArch(f.Machine)
	f.Memory, f.Available = parseMemory(sec["meminfo"])
	if f.Default = parseRoute(sec["route4"]); f.Default == "" {
		f.Default = parseRoute(sec["route6"])
	}
	if in := sec["init"]; len(in) > 0 {
		f.Init = in[0]
		if len(in) > 1 && in[1] == "running" {
			f.Systemd = parseSystemd(first(sec["systemd"]))
		}
	}
	if t := sec["time"]; len(t) > 0 {
		f.Time = parseTime(t[0])
		if len(t) > 1 {
			f.TimeZone = t[1]
		}
	}
	if p := first(sec["packages"]); p != "" {
		f.PackageTool = p[strings.LastIndexByte(p, '/')+1:]
	}
	if u := sec["user"]; len(u) > 1 {
		f.User, f.UID = u[0], int(number(u[1]))
	}
	return f, nil
}

// sections splits the output into sections and drops empty lines.
func sections(b []byte) map[string][]string {
	out := map[string][]string{}
	name := ""
	for line := range bytes.Lines(b) {
		s := strings.TrimSpace(string(line))
		if n, ok := strings.CutPrefix(s, "==> "); ok {
			name = n
			out[name] = nil
			continue
		}
		if name != "" && s != "" {
			out[name] = append(out[name], s)
		}
	}
	return out
}

func first(lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	return lines[0]
}

// number parses a number. It returns 0 for negative numbers and for other text.
func number(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return n
}

func parseOSRelease(lines []string) OSRelease {
	m := map[string]string{}
	for _, l := range lines {
		if k, v, ok := strings.Cut(l, "="); ok {
			m[k] = unquote(v)
		}
	}
	codename := m["VERSION_CODENAME"]
	return OSRelease{
		ID: m["ID"], VersionID: m["VERSION_ID"], Pretty: m["PRETTY_NAME"],
		Like: strings.Fields(m["ID_LIKE"]), Codename: codename,
	}
}

// unquote removes the quotes of a shell word, as os-release(5) allows them.
func unquote(s string) string {
	if len(s) >= 2 && (s[0] == '"' || s[0] == '\'') && s[len(s)-1] == s[0] {
		q := s[0]
		s = s[1 : len(s)-1]
		if q == '"' {
			s = strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\$`, `$`, "\\`", "`").Replace(s)
		}
	}
	return s
}

// parseMemory parses /proc/meminfo and returns bytes.
func parseMemory(lines []string) (total, available int64) {
	for _, l := range lines {
		f := strings.Fields(l)
		if len(f) < 2 {
			continue
		}
		switch f[0] {
		case "MemTotal:":
			total = kib(f[1])
		case "MemAvailable:":
			available = kib(f[1])
		}
	}
	return total, available
}

// kib converts KiB to bytes; 0 for values above 2^52.
func kib(s string) int64 {
	n := number(s)
	if n > 1<<52 {
		return 0
	}
	return n << 10
}

// parseSwaps returns the devices and files of /proc/swaps, whose first line is a header.
func parseSwaps(lines []string) []string {
	var swaps []string
	for i, l := range lines {
		if f := strings.Fields(l); i > 0 && len(f) > 0 {
			swaps = append(swaps, f[0])
		}
	}
	return swaps
}

func parseSELinux(s string) string {
	switch s {
	case "1":
		return "enforcing"
	case "0":
		return "permissive"
	}
	return strings.ToLower(s)
}

// parseSystemd parses "systemd 252 (252.39-1)".
func parseSystemd(s string) int {
	if f := strings.Fields(s); len(f) > 1 && f[0] == "systemd" {
		return int(number(f[1]))
	}
	return 0
}

// parseTime parses seconds and nanoseconds, as date +%s.%N prints them.
func parseTime(s string) time.Time {
	sec, nano, _ := strings.Cut(s, ".")
	n := number(sec)
	if n == 0 || n > 1<<38 {
		return time.Time{}
	}
	return time.Unix(n, min(number(nano), 999_999_999)).UTC()
}

func parseResolv(path string, lines []string) Resolv {
	r := Resolv{Path: path, Kind: "file"}
	switch {
	case strings.HasSuffix(path, "/systemd/resolve/stub-resolv.conf"):
		r.Kind = "systemd-resolved-stub"
	case strings.HasSuffix(path, "/systemd/resolve/resolv.conf"):
		r.Kind = "systemd-resolved"
	case strings.Contains(path, "/NetworkManager/"):
		r.Kind = "networkmanager"
	case strings.Contains(path, "/resolvconf/"):
		r.Kind = "resolvconf"
	}
	for _, l := range lines {
		f := strings.Fields(l)
		switch {
		case len(f) > 1 && f[0] == "nameserver":
			r.Nameservers = append(r.Nameservers, f[1])
		case len(f) > 1 && (f[0] == "search" || f[0] == "domain"):
			r.Search = f[1:]
		}
	}
	return r
}
