package conntest

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/steps/connector"
)

// unit is what systemd has in memory of a unit. That a unit exists, and that it
// is enabled, is in the files.
type unit struct {
	loaded string // its text when systemd last read it
	ran    string // its text when it was last started
	active bool
	failed bool
	pid    int
}

// unitDirs are where unit files lie, the first found wins.
var unitDirs = []string{"/etc/systemd/system", "/run/systemd/system", "/run/systemd/generator", "/usr/local/lib/systemd/system", "/usr/lib/systemd/system"}

// UnitState is the state of a unit, for tests.
type UnitState struct {
	Exists, Active, Enabled, Masked, Failed bool
	Stale                                   bool   // its file has changed since systemd loaded it
	Ran                                     string // the text of its file when it was last started
}

// AddUnit adds a unit of the distribution, which may be active and enabled.
func (s *Sim) AddUnit(name, text string, active, enabled bool) {
	s.AddFile("/usr/lib/systemd/system/"+name, text, 0o644)
	s.mu.Lock()
	defer s.mu.Unlock()
	if enabled {
		s.enable(name)
	}
	if active {
		s.start(name)
	}
}

// Unit returns the state of a unit.
func (s *Sim) Unit(name string) UnitState {
	s.mu.Lock()
	defer s.mu.Unlock()
	file, text := s.unitFile(name)
	st := UnitState{Exists: file != "", Masked: s.masked(name), Enabled: s.enabled(name)}
	if u := s.units[name]; u != nil {
		st.Active, st.Failed, st.Ran, st.Stale = u.active, u.failed, u.ran, u.loaded != text
	}
	return st
}

// KillUnit makes a running unit fail, as a crash does.
func (s *Sim) KillUnit(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if u := s.units[name]; u != nil {
		u.active, u.failed, u.pid = false, true, 0
	}
}

// unitFile gives the file of a unit and its text with those of its drop-ins.
func (s *Sim) unitFile(name string) (file, text string) {
	for _, d := range unitDirs {
		if f, ok := s.files.at[s.resolve(d+"/"+name, true)]; ok && !f.Mode.IsDir() {
			file, text = d+"/"+name, string(f.Data)
			break
		}
	}
	if file == "" {
		return "", ""
	}
	for _, d := range unitDirs {
		for _, drop := range s.children(d + "/" + name + ".d") {
			if strings.HasSuffix(drop, ".conf") {
				text += "\n" + string(s.files.at[d+"/"+name+".d/"+drop].Data)
			}
		}
	}
	return file, text
}

func (s *Sim) masked(name string) bool {
	f, ok := s.files.at["/etc/systemd/system/"+name]
	return ok && f.Mode&fs.ModeSymlink != 0 && f.Target == "/dev/null"
}

// setting gives the values of a key in a unit's text.
func setting(text, key string) []string {
	var out []string
	for line := range strings.Lines(text) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), key+"="); ok {
			out = append(out, strings.Fields(v)...)
		}
	}
	return out
}

// wants gives the links that enabling makes.
func (s *Sim) wants(name string) []string {
	_, text := s.unitFile(name)
	var links []string
	for _, t := range setting(text, "WantedBy") {
		links = append(links, "/etc/systemd/system/"+t+".wants/"+name)
	}
	for _, t := range setting(text, "RequiredBy") {
		links = append(links, "/etc/systemd/system/"+t+".requires/"+name)
	}
	return links
}

func (s *Sim) enabled(name string) bool {
	for dir, names := range s.files.in {
		if _, ok := slices.BinarySearch(names, name); ok && strings.HasSuffix(dir, ".wants") && s.files.at[dir+"/"+name].Mode&fs.ModeSymlink != 0 {
			return true
		}
	}
	return false
}

func (s *Sim) enable(name string) {
	file, _ := s.unitFile(name)
	for _, l := range s.wants(name) {
		s.addDir(path.Dir(l), 0o755)
		s.files.put(l, link(file))
	}
}

// disable takes the links away, also those of a unit whose file is gone, and the
// folders that they leave empty.
func (s *Sim) disable(name string) {
	for p, f := range s.files.at {
		dir := path.Dir(p)
		if f.Mode&fs.ModeSymlink == 0 || path.Base(p) != name || path.Dir(dir) != "/etc/systemd/system" {
			continue
		}
		s.files.drop(p)
		if len(s.children(dir)) == 0 {
			s.files.drop(dir)
		}
	}
}

// load reads a unit the first time it is asked about.
func (s *Sim) load(name string) *unit {
	if u := s.units[name]; u != nil {
		return u
	}
	file, text := s.unitFile(name)
	if file == "" {
		return nil
	}
	s.units[name] = &unit{loaded: text}
	return s.units[name]
}

func (s *Sim) start(name string) {
	u := s.load(name)
	if u == nil {
		return
	}
	u.failed, u.ran = false, u.loaded
	u.active, u.pid = true, 1000+len(s.calls.noted)
	for _, what := range setting(u.loaded, "What") { // of a swap unit
		s.swapOn(what, "")
	}
	if slices.Contains(setting(u.loaded, "Type"), "oneshot") {
		u.pid = 0
		u.active = slices.Contains(setting(u.loaded, "RemainAfterExit"), "yes")
	}
}

// doUnit knows the verbs about units.
func (s *Sim) doUnit(c connector.Cmd, _ []byte) (connector.Result, bool) {
	if !strings.HasPrefix(c.Verb, "unit.") {
		return connector.Result{}, false
	}
	switch c.Verb {
	case connector.VerbUnitScan:
		s.daemonReload()
		return connector.Result{}, true
	case connector.VerbUnitJournal:
		return connector.Result{}, true
	}
	name := c.Args()[0]
	file, _ := s.unitFile(name)
	u := s.load(name)
	switch c.Verb {
	case connector.VerbUnitShow:
		return s.show(name, file, u)
	case connector.VerbUnitStart, connector.VerbUnitRestart, connector.VerbUnitReload:
		return s.run(c.Verb, name, u)
	case connector.VerbUnitStop:
		if u == nil {
			return exits(5, "Failed to stop %s: Unit %s not loaded.", name, name)
		}
		u.active, u.failed, u.pid = false, false, 0
		return connector.Result{}, true
	case connector.VerbUnitEnable:
		switch {
		case s.masked(name):
			return exits(1, "Failed to enable unit: Unit file /etc/systemd/system/%s is masked.", name)
		case file == "":
			return exits(1, "Failed to enable unit: Unit file %s does not exist.", name)
		}
		s.enable(name)
		return connector.Result{}, true
	case connector.VerbUnitDisable:
		if file == "" && !s.enabled(name) {
			return exits(1, "Failed to disable unit: Unit file %s does not exist.", name)
		}
		s.disable(name)
		return connector.Result{}, true
	case connector.VerbUnitMask, connector.VerbUnitUnmask:
		return s.mask(c.Verb == connector.VerbUnitMask, name)
	case connector.VerbUnitReset:
		if u == nil {
			return exits(1, "Failed to reset failed state of unit %s: Unit %s not loaded.", name, name)
		}
		u.failed = false
		return connector.Result{}, true
	}
	return connector.Result{}, false
}

func (s *Sim) run(verb, name string, u *unit) (connector.Result, bool) {
	what := strings.TrimPrefix(verb, "unit.")
	switch {
	case s.masked(name):
		return exits(1, "Failed to %s %s: Unit %s is masked.", what, name, name)
	case u == nil:
		return exits(5, "Failed to %s %s: Unit %s not found.", what, name, name)
	case verb == connector.VerbUnitStart && u.active:
		return connector.Result{}, true
	}
	s.start(name)
	return connector.Result{}, true
}

func (s *Sim) mask(on bool, name string) (connector.Result, bool) {
	p := "/etc/systemd/system/" + name
	f, ok := s.files.at[p]
	switch {
	case on && ok && !s.masked(name) && f.Mode.IsRegular():
		return exits(1, "Failed to mask unit: File %s already exists.", p)
	case on:
		s.files.put(p, link("/dev/null"))
	case s.masked(name):
		s.files.drop(p)
	}
	return connector.Result{}, true
}

// daemonReload reads all units again; what is gone and does not run is forgotten.
func (s *Sim) daemonReload() {
	for name, u := range s.units {
		file, text := s.unitFile(name)
		if file == "" && !u.active && !u.failed {
			delete(s.units, name)
			continue
		}
		u.loaded = text
	}
}

func (s *Sim) show(name, file string, u *unit) (connector.Result, bool) {
	load, active, sub, state, result, reload := "loaded", "inactive", "dead", "disabled", "success", "no"
	switch {
	case s.masked(name):
		load, state = "masked", "masked"
	case file == "" && (u == nil || !u.active && !u.failed):
		load, state = "not-found", ""
	case s.enabled(name):
		state = "enabled"
	case len(s.wants(name)) == 0:
		state = "static"
	}
	pid := 0
	if u != nil {
		if _, text := s.unitFile(name); u.loaded != text {
			reload = "yes"
		}
		switch {
		case u.active:
			active, sub, pid = "active", "running", u.pid
			if pid == 0 {
				sub = "exited"
			}
		case u.failed:
			active, sub, result = "failed", "failed", "exit-code"
		}
	}
	return says("MainPID=%d\nNRestarts=0\nResult=%s\nId=%s\nLoadState=%s\nActiveState=%s\nSubState=%s\nFragmentPath=%s\nUnitFileState=%s\nNeedDaemonReload=%s\nDescription=%s\n",
		pid, result, name, load, active, sub, file, state, reload, fmt.Sprint(name))
}
