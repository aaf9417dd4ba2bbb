package main

import (
	"cmp"
	"path/filepath"
	"time"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps/etcd"
	"github.com/mensylisir/kubexm/steps/registryd"
)

// fromConfig gives the files of a store and the folders of registries that stand
// already their places on this machine: a config names them as seen from its own
// folder.
func fromConfig(c *manifest.Cluster, config string) {
	dir := (&sourceFlags{config: cmp.Or(config, "-")}).base()
	e := &c.Spec.Etcd.External
	for _, file := range []*string{&e.CAFile, &e.CertFile, &e.KeyFile} {
		*file = placed(dir, *file)
	}
	t := &c.Spec.Bundle.Trust
	t.TrustedRoot = placed(dir, t.TrustedRoot)
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

// checkFiles looks at these files before a host is called, where they are going
// to be used.
func checkFiles(f *siteFlags, s *site) error {
	if !s.pipeline.Keeps {
		return nil
	}
	all := append(etcd.CheckFiles(s.cluster, time.Now()), registryd.CheckFiles(s.cluster, time.Now())...)
	return all.In(cmp.Or(f.config, "config of "+f.bundle)).Err()
}
