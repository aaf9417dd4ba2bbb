package manifest

import "path/filepath"

// PlaceFiles gives the files of a store and the folders of registries that exist already
// their places on this machine: a config names them as seen from its own folder, dir.
func (c *Cluster) PlaceFiles(dir string) {
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

// TrustHostKeys has all hosts trust host keys by policy, and none by a key that the config
// names; "" leaves them as the config says.
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
