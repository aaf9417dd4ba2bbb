package manifest

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// maxRange is the maximum number of names in one range: a typing error must not become a
// million hosts.
const maxRange = 10000

var rangePattern = regexp.MustCompile(`^([^\[\]]*)\[([0-9]+):([0-9]+)\]([^\[\]]*)$`)

// ExpandRange returns the names that s represents: node[5:7] is node5, node6 and node7. If the
// first number begins with a zero, numbers are padded to its width: node[08:10] is node08,
// node09 and node10. A name without brackets represents itself.
func ExpandRange(s string) ([]string, error) {
	if !strings.ContainsAny(s, "[]") {
		return []string{s}, nil
	}
	r, err := parseRange(s)
	if err != nil {
		return nil, err
	}
	names := make([]string, 0, r.last-r.first+1)
	for n := r.first; n <= r.last; n++ {
		names = append(names, r.name(n))
	}
	return names, nil
}

// span is a range of names.
type span struct {
	before, after      string
	first, last, width int
}

func parseRange(s string) (span, error) {
	m := rangePattern.FindStringSubmatch(s)
	if m == nil {
		return span{}, fmt.Errorf("%q is not a range such as node[5:6]", s)
	}
	r := span{before: m[1], after: m[4]}
	var err1, err2 error
	r.first, err1 = strconv.Atoi(m[2])
	r.last, err2 = strconv.Atoi(m[3])
	if err1 != nil || err2 != nil {
		return r, fmt.Errorf("range %q has a number that is too long", s)
	}
	if r.first > r.last {
		return r, fmt.Errorf("the first number of range %q is greater than the last", s)
	}
	if r.last-r.first >= maxRange {
		return r, fmt.Errorf("range %q represents more than %d names", s, maxRange)
	}
	if strings.HasPrefix(m[2], "0") {
		r.width = len(m[2])
	}
	return r, nil
}

func (r span) name(n int) string { return fmt.Sprintf("%s%0*d%s", r.before, r.width, n, r.after) }

// represents reports whether ExpandRange(s) contains name, without expanding s.
func represents(s, name string) bool {
	if !strings.ContainsAny(s, "[]") {
		return s == name
	}
	r, err := parseRange(s)
	if err != nil || !strings.HasPrefix(name, r.before) || !strings.HasSuffix(name, r.after) {
		return false
	}
	n, err := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(name, r.before), r.after))
	return err == nil && r.first <= n && n <= r.last && r.name(n) == name
}

// entries returns the entries of a role, with ranges as in the document.
func (r RoleGroups) entries(role string) []string {
	switch role {
	case RoleEtcd:
		return r.Etcd
	case RoleMaster:
		return r.Master
	case RoleWorker:
		return r.Worker
	case RoleRegistry:
		return r.Registry
	case RoleLoadBalancer:
		return r.LoadBalancer
	}
	return nil
}

// Names returns the host names of a role with expanded ranges, in the order of the document and
// without duplicates. Invalid ranges are left out: Decode reports them.
func (r RoleGroups) Names(role string) []string {
	var names []string
	seen := map[string]bool{}
	for _, e := range r.entries(role) {
		more, err := ExpandRange(e)
		if err != nil {
			continue
		}
		for _, n := range more {
			if !seen[n] {
				seen[n] = true
				names = append(names, n)
			}
		}
	}
	return names
}

// Has reports whether a host has a role.
func (r RoleGroups) Has(role, host string) bool {
	return slices.ContainsFunc(r.entries(role), func(e string) bool { return represents(e, host) })
}

// fewHosts are so few that looking for each of them costs less than a map of all hosts.
const fewHosts = 8

// HostsWith returns the hosts of a role, in the order in which the role lists them.
func (c *Cluster) HostsWith(role string) []Host {
	names := c.Spec.RoleGroups.Names(role)
	if len(names) <= fewHosts {
		var hosts []Host
		for _, name := range names {
			if h, ok := c.Host(name); ok {
				hosts = append(hosts, h)
			}
		}
		return hosts
	}
	at := make(map[string]int, len(c.Spec.Hosts))
	for i := range c.Spec.Hosts {
		if name := c.Spec.Hosts[i].Name; at[name] == 0 {
			at[name] = i + 1 // the first of a name
		}
	}
	var hosts []Host
	for _, name := range names {
		if i := at[name]; i > 0 {
			hosts = append(hosts, c.Spec.Hosts[i-1])
		}
	}
	return hosts
}

// BundlePlatforms returns the platforms of the bundle, sorted: spec.bundle.platforms, else the
// architectures of the hosts, else linux/amd64.
func (c *Cluster) BundlePlatforms() []Platform {
	ps := slices.Clone(c.Spec.Bundle.Platforms)
	if len(ps) == 0 {
		for _, h := range c.Spec.Hosts {
			arch := h.Arch
			if arch == "" {
				arch = "amd64"
			}
			ps = append(ps, Platform{OS: "linux", Arch: arch})
		}
	}
	if len(ps) == 0 {
		ps = []Platform{{OS: "linux", Arch: "amd64"}}
	}
	slices.SortFunc(ps, func(a, b Platform) int { return strings.Compare(a.String(), b.String()) })
	return slices.Compact(ps)
}
