package e2e

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mensylisir/kubexm/bundle/archive"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/testdata/built"
	"github.com/mensylisir/kubexm/testdata/upstream"
	"github.com/mensylisir/kubexm/versions"
)

// quickstart is what nearly every test builds.
const quickstart = "../configs/quickstart.yaml"

// measured asks a copy of the test binary to run kubexm and to say what it took.
const measured = "KUBEXM_E2E_MEASURED"

func TestMain(m *testing.M) {
	if name := os.Getenv(measured); name != "" {
		os.Exit(measure(name, os.Args[1:]))
	}
	os.Exit(m.Run())
}

// measure runs args and writes what they took to the file name. A process of
// its own does this because the kernel counts the memory of whoever forks as
// the child's: it has to be a small one.
func measure(name string, args []string) int {
	c := exec.Command(args[0], args[1:]...)
	c.Stdout, c.Stderr = os.Stdout, os.Stderr
	err := c.Run()
	if u, ok := c.ProcessState.SysUsage().(*syscall.Rusage); ok {
		text, _ := json.Marshal(usage{MaxRSS: u.Maxrss << 10, CPU: c.ProcessState.UserTime() + c.ProcessState.SystemTime()})
		if err := os.WriteFile(name, text, 0o600); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	var ended *exec.ExitError
	if errors.As(err, &ended) {
		return ended.ExitCode()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// usage is what one run took.
type usage struct {
	MaxRSS int64 // bytes
	CPU    time.Duration
}

// site is an upstream with a lock made for it, and a folder to work in.
type site struct {
	up     *upstream.Server
	dir    string
	config string
	paths  upstream.Paths
	lock   string // path of the lock
}

// newSite serves the quickstart's content at a scale, and pins its lock.
func newSite(t *testing.T, scale float64) *site {
	t.Helper()
	s := openSite(t, quickstart, upstream.Options{Scale: scale}, false)
	s.must(t, s.pin()...)
	return s
}

// openSite serves what a config asks for, over https with a CA of its own where
// it is to be secure. Nothing is pinned yet.
func openSite(t *testing.T, config string, o upstream.Options, secure bool) *site {
	t.Helper()
	up, err := upstream.New(t.Context(), resolve(t, config), o)
	if err != nil {
		t.Fatal(err)
	}
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	base, ca := "http://"+l.Addr().String(), []byte(nil)
	if secure {
		var c *tls.Config
		if c, ca, err = upstream.Certificate(); err != nil {
			t.Fatal(err)
		}
		base, l = "https://"+l.Addr().String(), tls.NewListener(l, c)
	}
	serve(t, l, up.Run)
	s := &site{up: up, dir: t.TempDir(), config: config}
	if s.paths, err = up.WriteFiles(s.dir, base, ca); err != nil {
		t.Fatal(err)
	}
	s.lock = filepath.Join(s.dir, "kubexm.lock")
	return s
}

// serve runs a server until the test ends.
func serve(t testing.TB, l net.Listener, run func(context.Context, net.Listener) error) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, l) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// pin gives the arguments that make the site's lock.
func (s *site) pin() []string {
	return []string{
		"bundle", "lock", "-f", s.config, "--sources", s.paths.Sources, "--versions", s.paths.Versions,
		"--lock", s.lock, "--cache-dir", filepath.Join(s.dir, "lock-cache"),
	}
}

// resolve gives the lock of a config, not pinned.
func resolve(t *testing.T, config string) *manifest.Lock {
	t.Helper()
	f, err := os.Open(config)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	cluster, problems := manifest.Decode(f)
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	catalog, problems := versions.Load()
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	lock, problems := catalog.Resolve(cluster)
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	return lock
}

// pinned reads the site's lock.
func (s *site) pinned(t testing.TB) *manifest.Lock {
	t.Helper()
	f, err := os.Open(s.lock)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	l, problems := manifest.DecodeLock(f)
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	return l
}

// build gives the arguments of a build into out with a cache, on the site's lock.
func (s *site) build(out, cache string, more ...string) []string {
	return slices.Concat([]string{
		"bundle", "build", "-f", s.config, "--sources", s.paths.Sources, "--versions", s.paths.Versions,
		"--lock", s.lock, "--locked", "--cache-dir", cache,
	}, more, []string{out})
}

// result is how a run ended.
type result struct {
	code   int
	stdout string
	stderr string
	took   time.Duration
}

// theProgram gives the kubexm that a site runs: its own, or the one of all tests.
func theProgram(t testing.TB, own string) string {
	t.Helper()
	if own != "" {
		return own
	}
	return built.Kubexm(t)
}

// command is kubexm with args, in an environment that has nothing of the user's.
func (s *site) command(t testing.TB, args []string, env ...string) *exec.Cmd {
	t.Helper()
	c := exec.CommandContext(t.Context(), built.Kubexm(t), args...)
	c.Env = append([]string{"HOME=" + s.dir, "PATH=" + os.Getenv("PATH"), "NO_PROXY=127.0.0.1", "TMPDIR=" + s.dir, "GOGC=" + os.Getenv("GOGC")}, env...)
	return c
}

// run runs kubexm to its end.
func (s *site) run(t testing.TB, args []string, env ...string) result {
	t.Helper()
	c := s.command(t, args, env...)
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	begin := time.Now()
	err := c.Run()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		t.Fatal(err)
	}
	return result{code: c.ProcessState.ExitCode(), stdout: stdout.String(), stderr: stderr.String(), took: time.Since(begin)}
}

// must runs kubexm and ends the test when it does not succeed.
func (s *site) must(t testing.TB, args ...string) result {
	t.Helper()
	r := s.run(t, args)
	if r.code != 0 {
		t.Fatalf("kubexm %s: exit %d\n%s", strings.Join(args, " "), r.code, r.stderr)
	}
	return r
}

// hash gives the sha256 of a file.
func hash(t *testing.T, path string) string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}

// names lists a folder.
func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

// finished lists a folder without what a build that failed continues later.
func finished(t *testing.T, dir string) []string {
	t.Helper()
	return slices.DeleteFunc(names(t, dir), func(name string) bool { return strings.Contains(name, ".tar.zst.partial") })
}

// newFolder makes a folder of that name under the site's.
func (s *site) newFolder(t testing.TB, name string) string {
	t.Helper()
	dir := filepath.Join(s.dir, name)
	if err := os.Mkdir(dir, 0o750); err != nil {
		t.Fatal(err)
	}
	return dir
}

// members lists what an archive holds.
func members(t *testing.T, path string) []archive.Member {
	t.Helper()
	r, err := archive.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	return r.Members()
}

// hashOf gives the sha256 of b.
func hashOf(b []byte) string { return fmt.Sprintf("%x", sha256.Sum256(b)) }
