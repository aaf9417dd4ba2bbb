package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/testdata/upstream"
	"github.com/mensylisir/kubexm/versions"
)

// lab is what all rows share: content, the lock that pins it, and the archive
// that comes of it when nothing breaks.
type lab struct {
	programs
	config string
	dir    string // a folder for everything that is written
	up     *upstream.Server
	pinned *manifest.Lock
	lock   string // path of the lock
	want   string // sha256 of the archive
	whole  string // path of that archive
	quick  bool   // fewer kills in each row
	clock  clock  // how long a build takes that is to be killed

	bundles installable // what clusters are made from
	models  models      // and what they are when nothing disturbs them
	pushes  pushes      // what is sent to registries, and what comes of it there
	signing keys        // a pair of them

	measured measures // how much there is to break of what is written to a disk
}

// scale makes the stand-ins small: what breaks is broken at any size.
const scale = 0.02

// openLab makes content for a config, pins it and builds it once.
func openLab(ctx context.Context, p programs, config, dir string) (*lab, error) {
	config, err := withPackages(config, dir)
	if err != nil {
		return nil, err
	}
	l := &lab{programs: p, config: config, dir: dir, lock: filepath.Join(dir, "kubexm.lock"), whole: filepath.Join(dir, "whole.tar.zst")}
	resolved, err := resolve(config)
	if err != nil {
		return nil, err
	}
	if l.up, err = upstream.New(ctx, resolved, upstream.Options{Scale: scale}); err != nil {
		return nil, err
	}
	if err := l.publish(resolved); err != nil {
		return nil, err
	}
	s, err := l.site(ctx, "lab", l.up)
	if err != nil {
		return nil, err
	}
	defer s.close()
	if r := s.run(ctx, s.args("lock")...); r.code != 0 {
		return nil, fmt.Errorf("pin: %s", r)
	}
	if r := s.run(ctx, s.build(l.whole)...); r.code != 0 {
		return nil, fmt.Errorf("build with nothing broken: %s", r)
	}
	if l.want, err = hashFile(l.whole); err != nil {
		return nil, err
	}
	f, err := os.Open(l.lock)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var problems manifest.Problems
	l.pinned, problems = manifest.DecodeLock(f)
	return l, problems.Err()
}

// resolve gives the lock of a config, not pinned.
func resolve(config string) (*manifest.Lock, error) {
	text, err := os.ReadFile(config)
	if err != nil {
		return nil, err
	}
	cluster, problems := manifest.Decode(bytes.NewReader(text))
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

// site is one row's own: a server in front of the content, a cache, a folder
// for what is built.
type site struct {
	*lab
	root   string
	out    string
	cache  string
	server *httptest.Server
	paths  upstream.Paths
}

// site serves h for a row; close ends it and removes what it wrote.
func (l *lab) site(ctx context.Context, name string, h http.Handler) (*site, error) {
	s := &site{lab: l, root: filepath.Join(l.dir, strings.NewReplacer("/", "-", " ", "-", ",", "").Replace(name))}
	s.out, s.cache = filepath.Join(s.root, "out"), filepath.Join(s.root, "cache")
	if err := os.MkdirAll(s.out, 0o750); err != nil {
		return nil, err
	}
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s.server = &httptest.Server{Listener: listener, Config: &http.Server{Handler: h, ReadHeaderTimeout: time.Minute, ErrorLog: silent()}}
	s.server.Start()
	s.paths, err = l.up.WriteFiles(s.root, s.server.URL, nil)
	return s, err
}

func (s *site) close() {
	s.server.CloseClientConnections() // a handler may wait for its client to go
	s.server.Close()
	_ = os.RemoveAll(s.root) // the lab's folder goes as a whole in the end
}

// archive is where the row's build writes.
func (s *site) archive() string { return filepath.Join(s.out, "bundle.tar.zst") }

// args gives the arguments of a bundle command that reads the config.
func (s *site) args(command string, more ...string) []string {
	return append([]string{"bundle", command, "-f", s.config, "--sources", s.paths.Sources, "--versions", s.paths.Versions,
		"--lock", s.lock, "--cache-dir", s.cache}, more...)
}

// build gives the arguments of a build into path.
func (s *site) build(path string, more ...string) []string {
	return s.args("build", slices.Concat([]string{"--locked", "--force"}, more, []string{path})...)
}

// ended is how a run of kubexm ended.
type ended struct {
	code   int // -1 when it was killed
	stderr string
	took   time.Duration
}

func (e ended) String() string { return fmt.Sprintf("exit %d: %s", e.code, e.why()) }

// why is the error's own line.
func (e ended) why() string {
	var last string
	for line := range strings.Lines(e.stderr) {
		if line = strings.TrimSpace(line); line != "" {
			last = line
		}
		if strings.HasPrefix(line, "error: ") {
			return strings.TrimPrefix(line, "error: ")
		}
	}
	return last
}

// command is kubexm with args, in an environment that has nothing of the user's.
func (s *site) command(ctx context.Context, program string, args []string) *exec.Cmd {
	c := exec.CommandContext(ctx, program, args...)
	c.Env = []string{"HOME=" + s.root, "PATH=" + os.Getenv("PATH"), "NO_PROXY=127.0.0.1", "TMPDIR=" + s.root, "GOGC=" + os.Getenv("GOGC")}
	return c
}

// run runs kubexm to its end.
func (s *site) run(ctx context.Context, args ...string) ended {
	c := s.command(ctx, s.binary, args)
	var stderr bytes.Buffer
	c.Stderr = &stderr
	begin := time.Now()
	err := c.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return ended{code: -1, stderr: err.Error()}
	}
	return ended{code: c.ProcessState.ExitCode(), stderr: stderr.String(), took: time.Since(begin)}
}

// same says what is wrong with the archive at path; nil when it is the one that
// always comes.
func (l *lab) same(path string) error {
	got, err := hashFile(path)
	if err != nil {
		return err
	}
	if got != l.want {
		return fmt.Errorf("WRONG BYTES: sha256 %s, want %s", got, l.want)
	}
	return nil
}

// onlyIn says what a folder holds beside the names given.
func onlyIn(dir string, allowed ...string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !slices.Contains(allowed, e.Name()) {
			return fmt.Errorf("LEFT BEHIND: %s", e.Name())
		}
	}
	return nil
}

func hashFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return fmt.Sprintf("%x", h.Sum(nil)), nil
}
