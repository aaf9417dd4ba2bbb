package conntest

// Tune sets a kernel setting until the next boot, as a program of the host does. A
// setting that the kernel does not have stays away.
func (s *Sim) Tune(key, value string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.sysctls[key]; ok {
		s.sysctls[key] = value
	}
}
