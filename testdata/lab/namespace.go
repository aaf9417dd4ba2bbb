package lab

// Namespace is the file of a host's network namespace: what enters it connects as the
// host's own programs do, and comes to the Services of a cluster that the host is a node
// of. Of an emulated machine it is only where its network card ends.
func (l *Lab) Namespace(h *Host) string { return "/run/netns/" + l.netns(h.Name) }
