package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log" //nolint:depguard // net/http wants one for what it complains of
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/testdata/upstream"
	"github.com/mensylisir/kubexm/versions"
)

// images is how many the work set has.
const images = 32

// work is the work set, served, with a lock.
type work struct {
	options
	self    string
	dir     string
	config  string
	content *content
	server  *http.Server
	base    string
	paths   upstream.Paths
	lock    string
	list    string // a file that names every path that a build asks for
	bytes   int64  // of all of them
}

// openWork makes the work set, pins it, and builds it once to have all of it on disk.
func openWork(ctx context.Context, o options, stderr io.Writer) (_ *work, err error) {
	w := &work{options: o}
	if w.self, err = os.Executable(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(o.dir, 0o750); err != nil {
		return nil, err
	}
	if w.dir, err = os.MkdirTemp(o.dir, "bench-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			w.close()
		}
	}()
	if w.dir, err = filepath.Abs(w.dir); err != nil {
		return nil, err
	}
	begin := time.Now()
	resolved, err := w.writeConfig()
	if err != nil {
		return nil, err
	}
	up, err := upstream.New(ctx, resolved, upstream.Options{Scale: o.scale})
	if err != nil {
		return nil, err
	}
	if err := w.serve(ctx, up); err != nil {
		return nil, err
	}
	if w.paths, err = up.WriteFiles(w.dir, w.base, nil); err != nil {
		return nil, err
	}
	if _, err := w.measure(ctx, "", w.args("lock")...); err != nil {
		return nil, fmt.Errorf("pin: %w", err)
	}
	w.content.mu.Lock()
	clear(w.content.have) // a lock asks for more than a build
	w.content.mu.Unlock()
	if _, err := w.build(ctx, "first"); err != nil {
		return nil, err
	}
	if err := os.RemoveAll(filepath.Join(w.dir, "first")); err != nil {
		return nil, err
	}
	w.list, w.bytes = filepath.Join(w.dir, "list"), w.content.bytes()
	all := w.content.list()
	fmt.Fprintf(stderr, "work set: %d answers, %.2f GB, %d images, %d files; made in %s\n", len(all), float64(w.bytes)/1e9,
		len(resolved.Images), len(resolved.Artifacts), time.Since(begin).Round(time.Second))
	return w, os.WriteFile(w.list, []byte(strings.Join(all, "\n")), 0o600)
}

// writeConfig makes a config of one platform with enough images, and resolves it.
func (w *work) writeConfig() (*manifest.Lock, error) {
	text, err := os.ReadFile(w.options.config)
	if err != nil {
		return nil, err
	}
	s := strings.NewReplacer(", arch: arm64", "", "[linux/amd64, linux/arm64]", "[linux/amd64]").Replace(string(text))
	lock, err := resolve(s)
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	b.WriteString("    images:\n")
	for i := len(lock.Images); i < images; i++ {
		fmt.Fprintf(&b, "      - docker.io/bench/image-%02d:v1\n", i)
	}
	s += b.String() // spec.bundle stands last
	w.config = filepath.Join(w.dir, "config.yaml")
	if lock, err = resolve(s); err != nil {
		return nil, err
	}
	return lock, os.WriteFile(w.config, []byte(s), 0o600)
}

func resolve(config string) (*manifest.Lock, error) {
	cluster, problems := manifest.Decode(bytes.NewReader([]byte(config)))
	if err := problems.Err(); err != nil {
		return nil, err
	}
	catalog, problems := versions.Load()
	if err := problems.Err(); err != nil {
		return nil, err
	}
	lock, problems := catalog.Resolve(cluster)
	return lock, problems.Err()
}

func (w *work) serve(ctx context.Context, up http.Handler) error {
	dir := filepath.Join(w.dir, "content")
	if err := os.Mkdir(dir, 0o750); err != nil {
		return err
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	w.content = &content{dir: dir, make: up, have: map[string]stored{}}
	w.server = &http.Server{Handler: w.content, ReadHeaderTimeout: time.Minute, ErrorLog: log.New(io.Discard, "", 0)}
	w.base, w.lock = "http://"+l.Addr().String(), filepath.Join(w.dir, "kubexm.lock")
	go func() { _ = w.server.Serve(l) }() // until close
	return nil
}

func (w *work) close() {
	if w.server != nil {
		_ = w.server.Close()
	}
	_ = os.RemoveAll(w.dir)
}

// args gives kubexm with the arguments of a bundle command that reads the config.
func (w *work) args(command string, more ...string) []string {
	return append([]string{w.binary, "bundle", command, "-f", w.config, "--sources", w.paths.Sources, "--versions", w.paths.Versions, "--lock", w.lock}, more...)
}

// build builds into a folder that has nothing, or a warm cache from before.
func (w *work) build(ctx context.Context, name string) (sample, error) {
	out := filepath.Join(w.dir, name, "out")
	if err := errors.Join(os.RemoveAll(out), os.MkdirAll(out, 0o750)); err != nil {
		return sample{}, err
	}
	return w.measure(ctx, out, append(strings.Fields(w.wrap), w.args("build", "--locked", "--cache-dir", filepath.Join(w.dir, name, "cache"), filepath.Join(out, "x.tar.zst"))...)...)
}
