package conntest

import (
	"slices"
)

// What follows is for programs that a test scripts: they change the host as the
// real ones do, beside the commands that the Sim counts.

// StartUnit starts a unit. It ignores a unit that does not exist.
func (s *Sim) StartUnit(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.start(name)
}

// StopUnit stops a unit.
func (s *Sim) StopUnit(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if u := s.units[name]; u != nil {
		u.active, u.failed, u.pid = false, false, 0
	}
}

// Below returns the paths below a folder, sorted.
func (s *Sim) Below(dir string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.files.below(dir)
	slices.Sort(out)
	return out
}

// Names returns the names in a folder, sorted.
func (s *Sim) Names(dir string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.children(dir)
}
