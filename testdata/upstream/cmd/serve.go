package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/testdata/upstream"
	"github.com/mensylisir/kubexm/versions"
)

// flags are what both commands take.
type flags struct {
	config string
	out    string
	addr   string
	scale  float64
	single []string
	folder map[string]string
	tls    bool
}

func (f *flags) add(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVarP(&f.config, "filename", "f", "testdata/configs/quickstart.yaml", "the cluster config")
	fs.StringVar(&f.out, "out", "build", "the folder that sources.yaml and versions.yaml are written to")
	fs.StringVar(&f.addr, "addr", "127.0.0.1:0", "where to listen; port 0 takes a free one")
	fs.Float64Var(&f.scale, "scale", 1, "how much larger than usual the stand-ins are")
	fs.BoolVar(&f.tls, "tls", false, "speak https, with a CA made for the purpose in OUT/ca.pem")
	fs.StringToStringVar(&f.folder, "folder", nil, "folders of real files to serve, as deb.example/debian=DIR")
	fs.StringSliceVar(&f.single, "single", nil, "images that are published as one manifest without an index")
}

// opened is an upstream that listens, with its files written.
type opened struct {
	server   *upstream.Server
	listener net.Listener
	url      string
	paths    upstream.Paths
	lock     *manifest.Lock
}

// open resolves the config, makes the stand-ins, and listens.
func open(ctx context.Context, f *flags) (*opened, error) {
	lock, err := resolve(f.config)
	if err != nil {
		return nil, err
	}
	s, err := upstream.New(ctx, lock, upstream.Options{Scale: f.scale, Single: f.single})
	if err != nil {
		return nil, err
	}
	for at, dir := range f.folder {
		if err := s.Folder(at, dir); err != nil {
			return nil, err
		}
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", f.addr)
	if err != nil {
		return nil, err
	}
	o := &opened{server: s, listener: l, url: "http://" + l.Addr().String(), lock: s.Lock()}
	var ca []byte
	if f.tls {
		c, pem, err := upstream.Certificate()
		if err != nil {
			return nil, err
		}
		o.listener, o.url, ca = tls.NewListener(l, c), "https://"+l.Addr().String(), pem
	}
	o.paths, err = s.WriteFiles(f.out, o.url, ca)
	return o, err
}

func (o *opened) run(ctx context.Context) error { return o.server.Run(ctx, o.listener) }

// resolve gives the lock of a config, nothing of it pinned.
func resolve(config string) (*manifest.Lock, error) {
	text, err := os.ReadFile(filepath.Clean(config))
	if err != nil {
		return nil, err
	}
	cluster, problems := manifest.Decode(bytes.NewReader(text))
	if err := problems.In(config).Err(); err != nil {
		return nil, err
	}
	catalog, problems := versions.Load()
	if err := problems.Err(); err != nil {
		return nil, err
	}
	lock, problems := catalog.Resolve(cluster)
	if err := problems.In(config).Err(); err != nil {
		return nil, fmt.Errorf("resolve %s: %w", config, err)
	}
	return lock, nil
}
