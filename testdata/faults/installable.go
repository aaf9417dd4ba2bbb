package main

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/mensylisir/kubexm/testdata/upstream"
)

// installable is the bundle that clusters are made from, made once.
type installable struct {
	once          sync.Once
	path, version string
	err           error
}

// models are what installations come to that nothing disturbs, found out once.
type models struct {
	once  sync.Once
	model *model
	err   error
}

// tiny makes the stand-ins of programs and images smaller still: each installation
// carries them to three hosts.
const tiny = 0.002

// podNetwork is as much of flannel's manifest as an installation looks at.
const podNetwork = `{apiVersion: v1, kind: Namespace, metadata: {name: kube-flannel}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: kube-flannel-cfg, namespace: kube-flannel}, data: {net-conf.json: '{"Network": "10.244.0.0/16", "Backend": {"Type": "vxlan"}}'}}
---
{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: kube-flannel-ds, namespace: kube-flannel}}
`

// installable builds a bundle for siteConfig and gives its path, and the version
// of Kubernetes that it is of.
func (l *lab) installable(ctx context.Context) (path, version string, err error) {
	b := &l.bundles
	b.once.Do(func() { b.path, b.version, b.err = l.makeInstallable(ctx) })
	return b.path, b.version, b.err
}

func (l *lab) makeInstallable(ctx context.Context) (path, version string, err error) {
	quickstart, err := resolve(l.config)
	if err != nil {
		return "", "", err
	}
	version = quickstart.Sets[0].Name
	dir := filepath.Join(l.dir, "installable")
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return "", "", err
	}
	hosts := ""
	for i, n := range siteHosts {
		hosts += fmt.Sprintf("    - {name: %s, address: 192.0.2.%d}\n", n, 10+i)
	}
	config := filepath.Join(dir, "config.yaml")
	if err := os.WriteFile(config, fmt.Appendf(nil, siteConfig, hosts, version), 0o600); err != nil {
		return "", "", err
	}
	path = filepath.Join(dir, "demo.tar.zst")
	return path, version, l.buildFor(ctx, config, dir, func(s *site) error {
		if r := s.run(ctx, s.args("build", path)...); r.code != 0 {
			return fmt.Errorf("build a bundle to install: %s", r)
		}
		return nil
	})
}

// buildFor serves what a config asks for, and has build make a bundle of it in a folder.
func (l *lab) buildFor(ctx context.Context, config, dir string, build func(s *site) error) error {
	s, err := l.serveFor(ctx, config, dir, false)
	if err != nil {
		return err
	}
	defer s.server.Close()
	return build(s)
}

// serveFor serves what a config asks for, until the server is closed. single has images
// without an index, which registries take that want all that an index names.
func (l *lab) serveFor(ctx context.Context, config, dir string, single bool) (*site, error) {
	lock, err := resolve(config)
	if err != nil {
		return nil, err
	}
	real := upstream.Real{Files: map[string]string{}}
	for _, a := range lock.Artifacts {
		if strings.HasSuffix(a.Address, "/kube-flannel.yml") { // read, and changed, when it is installed
			real.Files[a.Address] = filepath.Join(dir, "flannel.yaml")
			if err := os.WriteFile(real.Files[a.Address], []byte(podNetwork), 0o600); err != nil {
				return nil, err
			}
		}
	}
	o := upstream.Options{Scale: tiny, Real: real}
	if single {
		for _, im := range lock.Images {
			o.Single = append(o.Single, im.Reference)
		}
	}
	up, err := upstream.New(ctx, lock, o)
	if err != nil {
		return nil, err
	}
	server := httptest.NewServer(up)
	paths, err := up.WriteFiles(dir, server.URL, nil)
	if err != nil {
		server.Close()
		return nil, err
	}
	return &site{server: server, lab: &lab{programs: l.programs, config: config, lock: filepath.Join(dir, "kubexm.lock")}, root: dir, cache: filepath.Join(dir, "cache"), paths: paths}, nil
}
