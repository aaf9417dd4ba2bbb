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
	"slices"
	"strings"
	"time"

	"github.com/mensylisir/kubexm/bundle"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/testdata/upstream"
	"github.com/mensylisir/kubexm/versions"
)

// images is how many the work set has.
const images = 32

// further is how many images the next config has beyond them.
const further = 4

// archiveName is what every archive is called here.
const archiveName = "x.tar.zst"

// work is the work set, served, with a lock.
type work struct {
	options
	self    string
	dir     string
	first   pinned // what is built, verified, pushed
	next    pinned // a few images more: what a delta is made of
	content *content
	target  *target
	servers []*http.Server
	base    string // of the content's address
	host    string // of the registry's
	paths   upstream.Paths
	list    string // a file that names every path that a build asks for
	bytes   int64  // of all of them

	archive string // the bundle
	root    string // its digest
	layout  string // the same, unpacked
	delta   delta

	fleet      *fleet
	fleetBytes int64             // of the files that each host gets
	peers      map[string]string // by name, the paths of those that are there
	theirs     theirs
	haul       string // the archive of images that Hauler pushes
}

// pinned is a config and its lock.
type pinned struct{ config, lock string }

// openWork makes the work set, pins it, and builds it once to have all of it on disk.
func openWork(ctx context.Context, o options, stderr io.Writer) (_ *work, err error) {
	w := &work{options: o, peers: findPeers(stderr)}
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
	if !slices.ContainsFunc(w.only, func(p string) bool { return p != partLarge }) {
		return w, nil // nothing is sent or built
	}
	if err := w.publish(ctx); err != nil {
		return nil, err
	}
	if err := w.prepare(ctx); err != nil {
		return nil, err
	}
	if w.has(partHosts) {
		if err := w.openFleet(ctx, stderr); err != nil {
			return nil, err
		}
	}
	fmt.Fprintf(stderr, "work set: %d answers, %.2f GB, %d images, %d files; made in %s\n", len(w.content.list()), float64(w.bytes)/1e9,
		len(w.theirs.images), len(w.theirs.files), time.Since(begin).Round(time.Second))
	return w, nil
}

// publish writes both configs, serves what they name, and pins them. Each image
// is published for one platform, without an index: not every tool copies an index
// of which platforms are absent.
func (w *work) publish(ctx context.Context) error {
	first, next, err := w.writeConfigs()
	if err != nil {
		return err
	}
	var single []string
	for _, im := range next.Images {
		single = append(single, im.Reference)
	}
	up, err := upstream.New(ctx, next, upstream.Options{Scale: w.scale, Single: single})
	if err != nil {
		return err
	}
	w.content = &content{dir: filepath.Join(w.dir, "content"), make: up, have: map[string]stored{}}
	w.target = &target{dir: filepath.Join(w.dir, "registry")}
	if err := errors.Join(os.Mkdir(w.content.dir, 0o750), w.target.empty()); err != nil {
		return err
	}
	if w.base, err = w.serve(ctx, w.content); err != nil {
		return err
	}
	if w.host, err = w.serve(ctx, w.target); err != nil {
		return err
	}
	w.host = strings.TrimPrefix(w.host, "http://")
	if w.theirs, err = rename(first, w.base); err != nil {
		return err
	}
	if w.paths, err = up.WriteFiles(w.dir, w.base, nil); err != nil {
		return err
	}
	for _, p := range []pinned{w.first, w.next} {
		if _, err := w.measure(ctx, process{args: w.args("lock", p, "lock")}); err != nil {
			return fmt.Errorf("pin: %w", err)
		}
	}
	return nil
}

// prepare has every answer written to disk, keeps the archive of that first build
// and what it unpacks to, and makes the delta.
func (w *work) prepare(ctx context.Context) error {
	w.content.mu.Lock()
	clear(w.content.have) // a lock asks for more than a build
	w.content.mu.Unlock()
	if _, err := w.build(ctx, "first", "first", "out"); err != nil {
		return err
	}
	w.archive = filepath.Join(w.dir, archiveName)
	built := filepath.Join(w.dir, "first")
	if err := errors.Join(os.Rename(filepath.Join(built, "out", archiveName), w.archive), os.RemoveAll(built)); err != nil {
		return err
	}
	w.list, w.bytes = filepath.Join(w.dir, "list"), w.content.bytes()
	if err := os.WriteFile(w.list, []byte(strings.Join(w.content.list(), "\n")), 0o600); err != nil {
		return err
	}
	if err := w.unpack(ctx); err != nil {
		return err
	}
	if w.has(partBuild) || w.has(partPush) { // what is pushed is known by it
		if err := w.measureDelta(ctx); err != nil {
			return err
		}
	}
	if path, ok := w.peers["hauler"]; ok {
		return w.haulerImages(ctx, path)
	}
	return nil
}

// writeConfigs makes two configs of one platform with enough images, and
// resolves them. The second has all of the first.
func (w *work) writeConfigs() (first, next *manifest.Lock, err error) {
	text, err := os.ReadFile(w.options.config)
	if err != nil {
		return nil, nil, err
	}
	s := strings.NewReplacer(", arch: arm64", "", "[linux/amd64, linux/arm64]", "[linux/amd64]").Replace(string(text))
	lock, err := resolve(s)
	if err != nil {
		return nil, nil, err
	}
	write := func(name string, have int) (pinned, *manifest.Lock, error) {
		var b strings.Builder
		b.WriteString(s + "    images:\n") // spec.bundle stands last
		for i := len(lock.Images); i < have; i++ {
			fmt.Fprintf(&b, "      - docker.io/bench/image-%02d:v1\n", i)
		}
		p := pinned{config: filepath.Join(w.dir, name+".yaml"), lock: filepath.Join(w.dir, name+".lock")}
		l, err := resolve(b.String())
		if err != nil {
			return p, nil, err
		}
		return p, l, os.WriteFile(p.config, []byte(b.String()), 0o600)
	}
	if w.first, first, err = write("config", images); err != nil {
		return nil, nil, err
	}
	w.next, next, err = write("next", images+further)
	return first, next, err
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

// serve serves on the loopback address, until close.
func (w *work) serve(ctx context.Context, h http.Handler) (base string, err error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	s := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute, ErrorLog: silent()}
	w.servers = append(w.servers, s)
	go func() { _ = s.Serve(l) }()
	return "http://" + l.Addr().String(), nil
}

// silent is for libraries that want to complain to somebody.
func silent() *log.Logger { return log.New(io.Discard, "", 0) }

// openFleet starts the hosts that the bundle's files are sent to.
func (w *work) openFleet(ctx context.Context, stderr io.Writer) (err error) {
	b, err := bundle.Open(ctx, w.archive, bundle.Policy{AllowUnsigned: true})
	if err != nil {
		return err
	}
	for _, f := range filesOf(b.Lock) {
		w.fleetBytes += f.Size
	}
	if err := b.Close(); err != nil {
		return err
	}
	w.fleet, err = startFleet(ctx, w.self, filepath.Join(w.dir, "fleet"), stderr)
	return err
}

func (w *work) close() {
	if w.fleet != nil {
		w.fleet.close()
	}
	for _, s := range w.servers {
		_ = s.Close()
	}
	_ = os.RemoveAll(w.dir)
}

// args gives kubexm with the arguments of a bundle command that reads a config.
func (w *work) args(step string, p pinned, command string, more ...string) []string {
	return w.kubexm(step, append([]string{"bundle", command, "-f", p.config, "--sources", w.paths.Sources, "--versions", w.paths.Versions, "--lock", p.lock}, more...)...)
}

// build builds an archive into the folder out of a work folder, which has nothing, or what
// earlier builds left: the cache, and their archives beside it. The disk of all of it is
// watched.
func (w *work) build(ctx context.Context, step, name, folder string) (sample, error) {
	dir := filepath.Join(w.dir, name)
	out := filepath.Join(dir, folder)
	if err := os.MkdirAll(out, 0o750); err != nil {
		return sample{}, err
	}
	return w.measure(ctx, process{out: out, disk: dir, args: w.args(step, w.first, "build", "--locked", "--cache-dir", filepath.Join(dir, "cache"), filepath.Join(out, archiveName))})
}
