package conntest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Snapshot is the state of a host, one line per item, sorted. Two hosts are equal if their
// snapshots are. It omits transient state: logs of jobs, and units that are loaded but not
// running.
type Snapshot []string

// Snapshot returns the state of the host.
func (s *Sim) Snapshot() Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out Snapshot
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	for p, f := range s.files.at {
		switch {
		case strings.HasPrefix(p, "/run/kubexm"):
		case f.Target != "":
			add("file %s -> %s", p, f.Target)
		case f.Mode.IsDir():
			add("file %s %s %d:%d", p, f.Mode, f.UID, f.GID)
		default:
			add("file %s %s %d:%d %d bytes %s", p, f.Mode, f.UID, f.GID, len(f.Data), digest(f.Data)[:16])
		}
	}
	for name, u := range s.units {
		if u.active || u.failed {
			add("unit %s active=%t failed=%t ran=%s", name, u.active, u.failed, digest([]byte(u.ran))[:16])
		}
	}
	for name := range s.jobs {
		add("job %s", name)
	}
	for k, v := range s.sysctls {
		add("sysctl %s = %s", k, v)
	}
	for m, st := range s.modules {
		add("module %s %s", m, st)
	}
	for n, a := range s.users {
		add("user %s %d:%d %s %s %s", n, a.uid, a.gid, a.home, a.shell, strings.Join(a.groups, ","))
	}
	for n, g := range s.groups {
		add("group %s %d", n, g)
	}
	for n, p := range s.packages {
		if p.state == packConfig {
			p.version = "" // of what was there last
		}
		add("package %s %s %s", n, p.version, p.state)
	}
	out = append(out, s.nodeLines()...)
	add("hostname %s", s.hostname)
	slices.Sort(out)
	return out
}

// Diff returns the lines that are only in a ("- …") or only in b ("+ …"), or "" if a and b
// are equal.
func Diff(a, b Snapshot) string {
	inA, inB := map[string]bool{}, map[string]bool{}
	for _, l := range a {
		inA[l] = true
	}
	for _, l := range b {
		inB[l] = true
	}
	all := maps.Clone(inA)
	maps.Copy(all, inB)
	var out []string
	for _, l := range slices.Sorted(maps.Keys(all)) {
		switch {
		case !inB[l]:
			out = append(out, "- "+l)
		case !inA[l]:
			out = append(out, "+ "+l)
		}
	}
	return strings.Join(out, "\n")
}
