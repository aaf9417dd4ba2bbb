package conntest

// Tune sets a kernel setting until the next boot, as a program of the host does. It ignores
// a setting that the kernel does not have.
func (s *Sim) Tune(key, value string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.sysctls[key]; ok {
		s.sysctls[key] = value
	}
}
