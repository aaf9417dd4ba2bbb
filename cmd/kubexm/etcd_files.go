package main

import (
	"cmp"
	"path/filepath"
	"time"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps/etcd"
)

// fromConfig gives the files of a store that stands already their places on this
// machine: a config names them as seen from its own folder.
func fromConfig(c *manifest.Cluster, config string) {
	dir := (&sourceFlags{config: cmp.Or(config, "-")}).base()
	e := &c.Spec.Etcd.External
	for _, file := range []*string{&e.CAFile, &e.CertFile, &e.KeyFile} {
		if *file != "" && !filepath.IsAbs(*file) {
			*file = filepath.Join(dir, *file)
		}
	}
}

// checkEtcdFiles looks at these files before a host is called, where they are
// going to be used.
func checkEtcdFiles(f *siteFlags, s *site) error {
	if s.graph.Name != "create" {
		return nil
	}
	return etcd.CheckFiles(s.cluster, time.Now()).In(cmp.Or(f.config, "config of "+f.bundle)).Err()
}
