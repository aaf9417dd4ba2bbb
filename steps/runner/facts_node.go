package runner

import (
	"cmp"
	"net/netip"
	"path"
	"slices"
	"strings"
)

// parseAhosts parses `getent ahosts NAME`: "192.0.2.11 STREAM m1", one line per address
// and socket type.
func parseAhosts(lines []string) []netip.Addr {
	var out []netip.Addr
	for _, l := range lines {
		word, _, _ := strings.Cut(l, " ")
		if a, err := netip.ParseAddr(word); err == nil && !slices.Contains(out, a) {
			out = append(out, a)
		}
	}
	return out
}

// parseUnits parses `systemctl show` of several units. It skips units that do not exist,
// and returns a unit with several names once.
func parseUnits(lines []string) []UnitFact {
	var out []UnitFact
	var u UnitFact
	loaded := false
	end := func() {
		if loaded && !slices.ContainsFunc(out, func(x UnitFact) bool { return x.Name == u.Name }) {
			out = append(out, u)
		}
		u, loaded = UnitFact{}, false
	}
	for _, l := range lines {
		k, v, _ := strings.Cut(l, "=")
		switch k {
		case "Id":
			end()
			u.Name = v
		case "LoadState":
			loaded = v != "not-found"
		case "ActiveState":
			u.Active = v == "active" || v == "activating" || v == "reloading"
		case "FragmentPath":
			u.Path = v
		}
	}
	end()
	slices.SortFunc(out, func(a, b UnitFact) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// parseProcesses parses lines such as "/proc/712/comm:kubelet".
func parseProcesses(lines []string) []ProcessFact {
	var out []ProcessFact
	for _, l := range lines {
		file, name, ok := strings.Cut(l, ":")
		if pid := number(path.Base(path.Dir(file))); ok && pid > 0 && pid < 1<<31 {
			out = append(out, ProcessFact{PID: int(pid), Name: name})
		}
	}
	slices.SortFunc(out, func(a, b ProcessFact) int { return cmp.Compare(a.PID, b.PID) })
	return out
}

func parseModules(lines []string) map[string]ModuleState {
	out := map[string]ModuleState{}
	for _, l := range lines {
		name, state, _ := strings.Cut(l, " ")
		switch s := ModuleState(state); s {
		case ModuleLoaded, ModuleBuiltin, ModuleAvailable, ModuleAbsent:
			out[name] = s
		}
	}
	return out
}

// parseSysctls parses lines such as "fs/inotify/max_user_watches 8192".
func parseSysctls(lines []string) map[string]string {
	out := map[string]string{}
	for _, l := range lines {
		if key, value, ok := strings.Cut(l, " "); ok {
			out[dotted(key)] = strings.TrimSpace(value)
		}
	}
	return out
}

// parseSysctlFiles parses lines such as "/etc/sysctl.d/50.conf:net.ipv4.ip_forward = 0".
func parseSysctlFiles(lines []string) []SysctlLine {
	var out []SysctlLine
	for _, l := range lines {
		file, rest, _ := strings.Cut(l, ":")
		key, value, ok := strings.Cut(rest, "=")
		if !ok || !strings.HasPrefix(file, "/") {
			continue
		}
		key = strings.TrimPrefix(strings.TrimSpace(key), "-")
		out = append(out, SysctlLine{File: file, Key: dotted(key), Value: strings.TrimSpace(value)})
	}
	return out
}

// dotted returns a sysctl key with dots as separators. The first dot or slash of a key is
// its separator, see sysctl.d(5).
func dotted(key string) string {
	if i := strings.IndexAny(key, "./"); i >= 0 && key[i] == '/' {
		return strings.NewReplacer("/", ".", ".", "/").Replace(key)
	}
	return key
}

// parseHeld parses dpkg's "hold NAME" and the lines of dnf's versionlock.list.
func parseHeld(lines []string) []string {
	var out []string
	for _, l := range lines {
		if name, ok := strings.CutPrefix(l, "hold "); ok {
			l = name
		}
		if !strings.HasPrefix(l, "#") && !strings.HasPrefix(l, "!") {
			out = append(out, l)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
