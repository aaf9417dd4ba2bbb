package conntest

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/steps/connector"
)

// swapArea is something that the kernel swaps to.
type swapArea struct {
	path     string
	priority string
}

// AddSwap activates a swap. It is active after a boot only if /etc/fstab or a unit
// activates it.
func (s *Sim) AddSwap(p, priority string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.addDir(path.Dir(p), 0o755)
	if s.files.at[p] == nil {
		s.files.put(p, &File{Mode: 0o600})
	}
	s.swapOn(p, priority)
}

// GenerateUnit adds and starts a unit that a systemd generator creates at each boot.
func (s *Sim) GenerateUnit(name, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.generated[name] = text
	s.generate(name)
}

func (s *Sim) generate(name string) {
	s.addDir("/run/systemd/generator", 0o755)
	s.files.put("/run/systemd/generator/"+name, &File{Mode: 0o644, Data: []byte(s.generated[name])})
	if !s.masked(name) {
		s.start(name)
	}
}

// Swaps returns the active swaps.
func (s *Sim) Swaps() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, a := range s.activeSwaps() {
		out = append(out, a.path+" "+a.priority)
	}
	return out
}

// activeSwaps are those that were switched on, or what the machine says by itself.
func (s *Sim) activeSwaps() []swapArea {
	if s.machine.Swap && len(s.swaps) == 0 {
		return []swapArea{{"/dev/vdb", "-2"}}
	}
	return s.swaps
}

func (s *Sim) swapOn(p, priority string) {
	if slices.ContainsFunc(s.swaps, func(a swapArea) bool { return a.path == p }) {
		return
	}
	if priority == "" { // the kernel's own go down from -2
		own := -2
		for _, a := range s.swaps {
			if strings.HasPrefix(a.priority, "-") {
				own--
			}
		}
		priority = fmt.Sprint(own)
	}
	s.swaps = append(s.swaps, swapArea{p, priority})
	s.machine.Swap = true
	s.swapUnits(p, true)
}

// swapUnits has the units of a place follow what the kernel does, as systemd has them.
func (s *Sim) swapUnits(p string, on bool) {
	for name, u := range s.units {
		if strings.HasSuffix(name, ".swap") && slices.Contains(setting(u.loaded, "What"), p) {
			u.active = on
			if on {
				u.ran = u.loaded
			}
		}
	}
}

func (s *Sim) swapOff(p string) bool {
	all := s.activeSwaps()
	s.swaps = slices.DeleteFunc(slices.Clone(all), func(a swapArea) bool { return a.path == p })
	s.machine.Swap = len(s.swaps) > 0
	s.swapUnits(p, false)
	return len(s.swaps) < len(all)
}

func (s *Sim) swappable(p string) bool { return s.files.at[p] != nil || p == "/dev/vdb" }

// swapUnit is the unit that systemd has for a place while it is swapped to.
func swapUnit(p string) string {
	return strings.ReplaceAll(strings.Trim(p, "/"), "/", "-") + ".swap"
}

// doNode knows the verbs that make a machine ready.
func (s *Sim) doNode(c connector.Cmd, _ []byte) (connector.Result, bool) {
	args := c.Args()
	switch c.Verb {
	case connector.VerbSwaps:
		return says("%s", s.showSwaps())
	case connector.VerbSwapOff:
		if !s.swapOff(args[0]) {
			return exits(4, "swapoff: %s: swapoff failed: Invalid argument", args[0])
		}
		return connector.Result{}, true
	case connector.VerbSwapOn:
		if !s.swappable(args[0]) {
			return exits(255, "swapon: cannot open %s: No such file or directory", args[0])
		}
		priority := ""
		if c.Argv[1] == "-p" {
			priority = c.Argv[2]
		}
		s.swapOn(args[0], priority)
		return connector.Result{}, true
	case connector.VerbSELinux, connector.VerbSELinuxW:
		return s.selinux(c.Verb == connector.VerbSELinuxW, args)
	case connector.VerbUFW, connector.VerbUFWOff, connector.VerbUFWOn:
		return s.doUFW(c.Verb)
	}
	return connector.Result{}, false
}

func (s *Sim) showSwaps() string {
	var b strings.Builder
	b.WriteString("Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n")
	for _, a := range s.activeSwaps() {
		fmt.Fprintf(&b, "%s partition\t1048572\t\t0\t\t%s\n", strings.ReplaceAll(a.path, " ", `\040`), a.priority)
	}
	b.WriteString("\n")
	for _, a := range s.activeSwaps() {
		b.WriteString(swapUnit(a.path) + "\n")
	}
	for _, dir := range unitDirs {
		for _, name := range s.children(dir) {
			if strings.HasSuffix(name, ".swap") {
				b.WriteString(name + "\n")
			}
		}
	}
	return b.String()
}

func (s *Sim) selinux(set bool, args []string) (connector.Result, bool) {
	words := map[string]string{"1": "Enforcing", "0": "Permissive"}
	if m := s.machine.SELinux; m != words["0"] && m != words["1"] {
		return exits(44, "")
	}
	if set {
		s.machine.SELinux = words[args[0]]
		return connector.Result{}, true
	}
	if s.machine.SELinux == words["1"] {
		return says("1")
	}
	return says("0")
}

const ufwConf = "/etc/ufw/ufw.conf"

// AddUFW installs ufw.
func (s *Sim) AddUFW(on bool) {
	enabled := "no"
	if on {
		enabled = "yes"
	}
	s.AddFile("/usr/sbin/ufw", "", 0o755)
	s.AddFile(ufwConf, "# /etc/ufw/ufw.conf\n#\n\nENABLED="+enabled+"\n\nLOGLEVEL=low\n", 0o644)
	s.AddUnit("ufw.service", "[Service]\nType=oneshot\nRemainAfterExit=yes\n[Install]\nWantedBy=multi-user.target\n", true, true)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ufw = on
}

func (s *Sim) doUFW(verb string) (connector.Result, bool) {
	f := s.files.at[ufwConf]
	if f == nil {
		return exits(44, "")
	}
	switch verb {
	case connector.VerbUFWOff:
		s.ufw = false
		f.Data = []byte(strings.Replace(string(f.Data), "ENABLED=yes", "ENABLED=no", 1))
		return says("Firewall stopped and disabled on system startup\n")
	case connector.VerbUFWOn:
		s.ufw = true
		f.Data = []byte(strings.Replace(string(f.Data), "ENABLED=no", "ENABLED=yes", 1))
		return says("Firewall is active and enabled on system startup\n")
	}
	if s.ufw {
		return says("Status: active\n\nTo                         Action      From\n--                         ------      ----\n22/tcp                     ALLOW       Anywhere\n")
	}
	return says("Status: inactive\n")
}

// bootNode brings back what files and generators ask for at a boot.
func (s *Sim) bootNode() {
	s.hostname = "localhost"
	if f := s.files.at["/etc/hostname"]; f != nil {
		s.hostname = strings.TrimSpace(string(f.Data))
	}
	s.swaps, s.machine.Swap = nil, false
	if f := s.files.at["/etc/fstab"]; f != nil {
		for line := range strings.Lines(string(f.Data)) {
			if w := strings.Fields(line); len(w) > 2 && !strings.HasPrefix(w[0], "#") && w[2] == "swap" {
				if s.swappable(w[0]) {
					s.swapOn(w[0], "")
				}
			}
		}
	}
	for name := range s.generated {
		s.generate(name)
	}
	if f := s.files.at[s.resolve("/etc/selinux/config", true)]; f != nil && s.machine.SELinux != "" {
		for line := range strings.Lines(string(f.Data)) {
			if v, ok := strings.CutPrefix(strings.TrimSpace(line), "SELINUX="); ok && v != "" {
				s.machine.SELinux = strings.ToUpper(v[:1]) + v[1:]
			}
		}
	}
	if f := s.files.at[ufwConf]; f != nil {
		s.ufw = strings.Contains(string(f.Data), "ENABLED=yes")
	}
}

// nodeLines are the lines of a snapshot that tell of these.
func (s *Sim) nodeLines() []string {
	var out []string
	for _, a := range s.activeSwaps() {
		out = append(out, "swap "+a.path+" "+a.priority)
	}
	if s.machine.SELinux != "" {
		out = append(out, "selinux "+s.machine.SELinux)
	}
	if s.files.at[ufwConf] != nil {
		out = append(out, fmt.Sprintf("ufw %t", s.ufw))
	}
	return out
}
