package conntest

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/mensylisir/kubexm/steps/connector"
)

type account struct {
	uid, gid    int
	home, shell string
	groups      []string
}

func (s *Sim) initUsers() {
	s.users = map[string]account{
		"root":   {0, 0, "/root", "/bin/bash", nil},
		"nobody": {65534, 65534, "/nonexistent", "/usr/sbin/nologin", nil},
	}
	s.groups = map[string]int{"root": 0, "nogroup": 65534, "adm": 4, "systemd-journal": 999}
}

// AddUser adds a login user with a group and an empty home folder of the same name.
func (s *Sim) AddUser(name string, id int) {
	s.AddDir("/home/"+name, 0o755)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users[name] = account{id, id, "/home/" + name, "/bin/bash", nil}
	s.groups[name] = id
}

// initKernel gives the settings that steps touch, as a kernel has them after boot.
func (s *Sim) initKernel() {
	s.boot = map[string]string{
		"net.ipv4.ip_forward": "0", "net.ipv4.conf.all.forwarding": "0", "net.ipv6.conf.all.forwarding": "0",
		"net.ipv4.conf.all.rp_filter": "0", "net.ipv4.conf.default.rp_filter": "0", "net.ipv4.ip_local_reserved_ports": "",
		"net.ipv4.ip_nonlocal_bind": "0", "net.ipv4.tcp_keepalive_time": "7200", "net.ipv4.tcp_max_syn_backlog": "1024",
		"net.ipv4.ip_local_port_range": "32768 60999", "net.core.somaxconn": "4096", "net.core.netdev_max_backlog": "1000",
		"net.core.rmem_max": "212992", "net.core.wmem_max": "212992",
		"vm.swappiness": "60", "vm.overcommit_memory": "0", "vm.panic_on_oom": "0", "vm.max_map_count": "65530",
		"fs.inotify.max_user_instances": "128", "fs.inotify.max_user_watches": "65536", "fs.file-max": "9223372036854775807",
		"fs.nr_open": "1048576", "fs.may_detach_mounts": "0",
		"kernel.pid_max": "4194304", "kernel.panic": "0", "kernel.panic_on_oops": "0", "kernel.threads-max": "63000",
		"kernel.keys.root_maxkeys": "1000000", "kernel.keys.root_maxbytes": "25000000",
	}
	s.sysctls = maps.Clone(s.boot)
	s.keysOf = map[string]map[string]string{
		"br_netfilter": {
			"net.bridge.bridge-nf-call-iptables": "1", "net.bridge.bridge-nf-call-ip6tables": "1", "net.bridge.bridge-nf-call-arptables": "1",
		},
		"nf_conntrack": {"net.netfilter.nf_conntrack_max": "131072"},
	}
	for _, m := range []string{
		"overlay", "br_netfilter", "nf_conntrack", "vxlan", "ip_tables", "iptable_nat", "ip6_tables", "nf_nat", "xt_set", "ipip",
		"ip_vs", "ip_vs_rr", "ip_vs_wrr", "ip_vs_sh", "dummy", "iscsi_tcp", "nfs", "ip_set", "xt_conntrack", "nf_tables", "wireguard", "ipvlan",
	} {
		s.modules[m] = "available"
	}
}

// Sysctl returns a kernel setting, or "" if it does not exist.
func (s *Sim) Sysctl(key string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sysctls[key]
}

// SetSysctl sets a kernel setting, and adds it if it does not exist.
func (s *Sim) SetSysctl(key, value string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sysctls[key], s.boot[key] = value, value
}

// SetModule sets the state of a kernel module: loaded, builtin, available, absent.
func (s *Sim) SetModule(name, state string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.modules[name] = state; state == "absent" {
		delete(s.modules, name)
	}
	s.moduleKeys(name)
}

// Module returns the state of a kernel module.
func (s *Sim) Module(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if st, ok := s.modules[strings.ReplaceAll(name, "-", "_")]; ok {
		return st
	}
	return "absent"
}

// moduleKeys adds or takes the settings that come with a module.
func (s *Sim) moduleKeys(name string) {
	on := s.modules[name] == "loaded" || s.modules[name] == "builtin"
	for k, v := range s.keysOf[name] {
		if _, had := s.sysctls[k]; on && !had {
			s.sysctls[k] = v
		} else if !on {
			delete(s.sysctls, k)
		}
	}
}

// Hostname returns the host name.
func (s *Sim) Hostname() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hostname
}

func (s *Sim) userName(uid int) string {
	for n, a := range s.users {
		if a.uid == uid {
			return n
		}
	}
	return "UNKNOWN"
}

func (s *Sim) groupName(gid int) string {
	for n, g := range s.groups {
		if g == gid {
			return n
		}
	}
	return "UNKNOWN"
}

func (s *Sim) uid(name string) (int, bool) {
	if n, err := strconv.Atoi(name); err == nil {
		return n, true
	}
	a, ok := s.users[name]
	return a.uid, ok
}

func (s *Sim) gid(name string) (int, bool) {
	if n, err := strconv.Atoi(name); err == nil {
		return n, true
	}
	g, ok := s.groups[name]
	return g, ok
}

// doSystem knows the verbs about the kernel, users, and the machine.
func (s *Sim) doSystem(c connector.Cmd, _ []byte) (connector.Result, bool) {
	args := c.Args()
	switch c.Verb {
	case connector.VerbSysctl:
		if v, ok := s.sysctls[args[0]]; ok {
			return says("%s\n", v)
		}
		return exits(44, "")
	case connector.VerbSysctlW:
		if _, ok := s.sysctls[args[0]]; !ok {
			return exits(44, "")
		}
		s.sysctls[args[0]] = args[2]
		return connector.Result{}, true
	case connector.VerbModule:
		if st, ok := s.modules[strings.ReplaceAll(args[0], "-", "_")]; ok {
			return says("%s\n", st)
		}
		return says("absent\n")
	case connector.VerbModprobe, connector.VerbRmmod:
		return s.modprobe(c.Verb == connector.VerbModprobe, args[0])
	case connector.VerbHostname:
		return says("%s\n", s.hostname)
	case connector.VerbHostnameW:
		s.hostname = args[0]
		return connector.Result{}, true
	case connector.VerbBootID:
		return says("%s\n", s.bootID())
	case connector.VerbReboot:
		s.reboot()
		return connector.Result{}, true
	case connector.VerbFacts:
		return connector.Result{Stdout: []byte(s.facts())}, true
	case connector.VerbHasProgram:
		for dir := range strings.SplitSeq(connector.SearchPath, ":") {
			if f, ok := s.files.at[s.resolve(dir+"/"+args[0], true)]; ok && f.Mode.IsRegular() && f.Mode&0o111 != 0 {
				return says("%s\n", dir+"/"+args[0])
			}
		}
		return exits(44, "")
	}
	return s.doUser(c)
}

func (s *Sim) modprobe(load bool, name string) (connector.Result, bool) {
	name = strings.ReplaceAll(name, "-", "_")
	st, ok := s.modules[name]
	switch {
	case !ok && load:
		return exits(1, "modprobe: FATAL: Module %s not found in directory /lib/modules/%s", name, s.machine.Kernel)
	case !ok:
		return exits(1, "modprobe: FATAL: Module %s not found.", name)
	case load && st == "available":
		s.modules[name] = "loaded"
	case !load && st == "builtin":
		return exits(1, "modprobe: FATAL: Module %s is builtin.", name)
	case !load:
		s.modules[name] = "available"
	}
	s.moduleKeys(name)
	return connector.Result{}, true
}

// doUser knows the verbs about users and groups. useradd and groupadd come with
// the arguments that the runner gives them.
func (s *Sim) doUser(c connector.Cmd) (connector.Result, bool) {
	args := c.Args()
	if len(args) == 0 {
		return connector.Result{}, false
	}
	name := args[len(args)-1]
	switch c.Verb {
	case connector.VerbUser:
		a, ok := s.users[name]
		if !ok {
			return exits(44, "")
		}
		groups := append([]string{s.groupName(a.gid)}, a.groups...)
		return says("%s:x:%d:%d::%s:%s\n%s\n", name, a.uid, a.gid, a.home, a.shell, strings.Join(groups, " "))
	case connector.VerbGroup:
		g, ok := s.groups[name]
		if !ok {
			return exits(44, "")
		}
		return says("%s:x:%d:\n", name, g)
	case connector.VerbUserAdd:
		return s.useradd(name, options(args))
	case connector.VerbGroupAdd:
		if _, ok := s.groups[name]; ok {
			return exits(9, "groupadd: group '%s' already exists", name)
		}
		s.groups[name] = s.nextID(options(args)["--gid"])
		return connector.Result{}, true
	case connector.VerbUserDel:
		if _, ok := s.users[name]; !ok {
			return exits(6, "userdel: user '%s' does not exist", name)
		}
		a := s.users[name]
		delete(s.users, name)
		if s.groupName(a.gid) == name { // userdel takes the group of the user's name along
			delete(s.groups, name)
		}
		return connector.Result{}, true
	case connector.VerbGroupDel:
		if _, ok := s.groups[name]; !ok {
			return exits(6, "groupdel: group '%s' does not exist", name)
		}
		delete(s.groups, name)
		return connector.Result{}, true
	}
	return connector.Result{}, false
}

func (s *Sim) useradd(name string, opt map[string]string) (connector.Result, bool) {
	if _, ok := s.users[name]; ok {
		return exits(9, "useradd: user '%s' already exists", name)
	}
	a := account{uid: s.nextID(opt["--uid"]), home: opt["--home-dir"], shell: opt["--shell"]}
	if g, ok := opt["--gid"]; ok {
		gid, known := s.gid(g)
		if !known {
			return exits(6, "useradd: group '%s' does not exist", g)
		}
		a.gid = gid
	} else {
		s.groups[name] = a.uid
		a.gid = a.uid
	}
	if g := opt["--groups"]; g != "" {
		a.groups = strings.Split(g, ",")
	}
	_, home := opt["--create-home"]
	if _, there := s.files.at[a.home]; home && !there { // one that is there stays as it is
		s.addDir(path.Dir(a.home), 0o755)
		s.addDir(a.home, 0o700)
		s.files.at[a.home].UID, s.files.at[a.home].GID = a.uid, a.gid
	}
	s.users[name] = a
	return connector.Result{}, true
}

// nextID gives the wanted number, or one that is free.
func (s *Sim) nextID(want string) int {
	if n, err := strconv.Atoi(want); err == nil {
		return n
	}
	used := slices.Collect(maps.Values(s.groups))
	for _, a := range s.users {
		used = append(used, a.uid)
	}
	for n := 998; ; n-- {
		if !slices.Contains(used, n) {
			return n
		}
	}
}

// options reads --name value pairs; a name that another follows has none.
func options(args []string) map[string]string {
	opt := map[string]string{}
	for i, a := range args[:len(args)-1] {
		if !strings.HasPrefix(a, "--") {
			continue
		}
		opt[a] = ""
		if next := args[i+1]; i+1 < len(args)-1 && !strings.HasPrefix(next, "--") {
			opt[a] = next
		}
	}
	return opt
}

func (s *Sim) bootID() string { return fmt.Sprintf("00000000-0000-4000-8000-%012d", s.boots) }

// Reboot reboots the host: only enabled units run, kernel settings and modules are those of
// the configuration files, /run is empty, and jobs no longer exist.
func (s *Sim) Reboot() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reboot()
}

func (s *Sim) reboot() {
	s.boots++
	for _, name := range s.children("/run") {
		s.purge("/run/" + name)
	}
	s.jobs = map[string]*job{}
	for m, st := range s.modules {
		if st == "loaded" {
			s.modules[m] = "available"
		}
	}
	s.sysctls = maps.Clone(s.boot)
	for _, f := range s.children("/etc/modules-load.d") {
		for line := range strings.Lines(string(s.files.at["/etc/modules-load.d/"+f].Data)) {
			if m := strings.TrimSpace(line); s.modules[m] == "available" {
				s.modules[m] = "loaded"
				s.moduleKeys(m)
			}
		}
	}
	for _, f := range s.children("/etc/sysctl.d") {
		for line := range strings.Lines(string(s.files.at["/etc/sysctl.d/"+f].Data)) {
			k, v, _ := strings.Cut(line, "=")
			if _, ok := s.sysctls[strings.TrimSpace(k)]; ok {
				s.sysctls[strings.TrimSpace(k)] = strings.TrimSpace(v)
			}
		}
	}
	for name := range s.units {
		delete(s.units, name)
	}
	s.bootNode()
	for p := range s.files.at {
		if name := path.Base(p); strings.HasSuffix(path.Dir(p), ".wants") && !s.masked(name) {
			s.start(name)
		}
	}
}
