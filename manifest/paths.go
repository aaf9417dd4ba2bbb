package manifest

import "path/filepath"

// ResolvePaths resolves the paths of certificates of external etcd and registries, and of trust
// settings. In a config they are relative to its folder, dir.
func (c *Cluster) ResolvePaths(dir string) {
	e, t := &c.Spec.Etcd.External, &c.Spec.Bundle.Trust
	for _, file := range []*string{&e.CAFile, &e.CertFile, &e.KeyFile, &t.TrustedRoot} {
		*file = placed(dir, *file)
	}
	for i := range t.Keys {
		t.Keys[i] = placed(dir, t.Keys[i])
	}
	for host, a := range c.Spec.Registry.Auths {
		a.CertsPath = placed(dir, a.CertsPath)
		c.Spec.Registry.Auths[host] = a
	}
}

func placed(dir, file string) string {
	if file == "" || filepath.IsAbs(file) {
		return file
	}
	return filepath.Join(dir, file)
}

// TrustHostKeys sets the host key policy of all hosts and removes their pinned host keys. The
// policy "" changes nothing.
func (c *Cluster) TrustHostKeys(policy string) {
	if policy == "" {
		return
	}
	set := func(s *SSH) {
		s.HostKeyPolicy, s.HostKey = policy, ""
		if s.JumpHost != nil {
			s.JumpHost.HostKeyPolicy, s.JumpHost.HostKey = policy, ""
		}
	}
	set(&c.Spec.SSH)
	for i := range c.Spec.Hosts {
		set(&c.Spec.Hosts[i].SSH)
	}
}
