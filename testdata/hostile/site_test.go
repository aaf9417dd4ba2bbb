package hostile

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/mensylisir/kubexm/bundle/sign"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/testdata/built"
	"github.com/mensylisir/kubexm/testdata/upstream"
	"github.com/mensylisir/kubexm/versions"
)

// measured has a copy of the test binary run kubexm and say what that took: the
// kernel counts the memory of whoever forks as the child's, so that it has to be a
// small one.
const measured = "KUBEXM_HOSTILE_MEASURED"

func TestMain(m *testing.M) {
	if name := os.Getenv(measured); name != "" {
		os.Exit(measure(name, os.Args[1:]))
	}
	os.Exit(m.Run())
}

// usage is what one run took.
type usage struct {
	MaxRSS int64 // bytes
	CPU    time.Duration
}

func measure(name string, args []string) int {
	c := exec.Command(args[0], args[1:]...)
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
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
	return 0
}

// site is the real kubexm, a true bundle, and hosts that count who calls them.
type site struct {
	dir    string
	binary string
	bundle string // path of the true one
	config string // for installing it on the hosts that count
	key    string // path of the public key that signature rows trust
	truth  *truth
	calls  atomic.Int64
	tally  tally

	trustedRoot string // path of one that vouches for other people
	otherConfig string // path of one whose hosts are of another platform
}

const config = `apiVersion: kubexm.mensylisir.io/v1alpha1
kind: Cluster
metadata: {name: site}
spec:
  hosts: [{name: m1, address: 127.0.0.1, port: %[1]d, internalAddress: 192.0.2.11, arch: %[4]s}, {name: w1, address: 127.0.0.1, port: %[2]d, internalAddress: 192.0.2.21, arch: %[4]s}]
  ssh: {user: root, password: secret, hostKeyPolicy: accept-new}
  roleGroups: {registry: [m1], master: [m1], worker: [w1]}
  kubernetes: {version: %[3]s}
  etcd: {type: kubeadm}
  network: {plugin: flannel}
`

// newSite builds the bundle.
func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{dir: t.TempDir(), binary: built.Kubexm(t)}
	const version = "v1.34.10"
	first, second := s.listen(t), s.listen(t)
	s.config, s.otherConfig = filepath.Join(s.dir, "config.yaml"), filepath.Join(s.dir, "arm64", "config.yaml")
	for path, arch := range map[string]string{s.config: "amd64", s.otherConfig: "arm64"} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, fmt.Appendf(nil, config, first, second, version, arch), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	s.bundle = filepath.Join(s.dir, "true.tar.zst")
	s.truth = s.build(t, s.config, s.bundle)
	s.truth.other = s.build(t, s.otherConfig, filepath.Join(s.dir, "arm64", "true.tar.zst"))
	var public []byte
	s.truth.maker, public = signer(t)
	s.truth.other.maker = s.truth.maker
	s.truth.stranger, _ = signer(t)
	s.key = filepath.Join(s.dir, "site.pub")
	if err := os.WriteFile(s.key, public, 0o600); err != nil {
		t.Fatal(err)
	}
	var err error
	if s.trustedRoot, err = filepath.Abs("../../bundle/sign/testdata/keyless/trusted_root.json"); err != nil {
		t.Fatal(err)
	}
	return s
}

// build builds the bundle of a config from stand-ins, and takes it apart.
func (s *site) build(t *testing.T, config, bundle string) *truth {
	t.Helper()
	up, err := upstream.New(t.Context(), resolved(t, config), upstream.Options{Scale: 0.001})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(up)
	defer server.Close()
	dir := filepath.Dir(bundle)
	paths, err := up.WriteFiles(dir, server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	r := s.run(t, dir, "bundle", "build", "-f", config, "--sources", paths.Sources, "--versions", paths.Versions,
		"--cache-dir", filepath.Join(dir, "cache"), bundle)
	if r.code != 0 {
		t.Fatalf("build the true bundle: exit %d\n%s", r.code, r.stderr)
	}
	x, err := readTruth(bundle)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func signer(t *testing.T) (*sign.Signer, []byte) {
	t.Helper()
	pair, err := sign.Generate(nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := sign.LoadSigner(pair.Private, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s, pair.Public
}

// listen is a host that answers nobody, and counts.
func (s *site) listen(t *testing.T) int {
	t.Helper()
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var done sync.WaitGroup
	done.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.calls.Add(1)
			_ = c.Close()
		}
	})
	t.Cleanup(func() { _ = l.Close(); done.Wait() })
	a, _ := l.Addr().(*net.TCPAddr)
	return a.Port
}

func resolved(t *testing.T, config string) *manifest.Lock {
	t.Helper()
	f, err := os.Open(config)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	c, problems := manifest.Decode(f)
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	catalog, problems := versions.Load()
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	l, problems := catalog.Resolve(c)
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	return l
}

// ran is how a run ended.
type ran struct {
	code           int
	stdout, stderr string
	usage          usage
	took           time.Duration
}

// run runs kubexm in a folder, to its end or for a minute.
func (s *site) run(t *testing.T, cwd string, args ...string) ran {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.CreateTemp(t.TempDir(), "usage")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	c := exec.CommandContext(ctx, self, append([]string{s.binary}, args...)...)
	c.Dir = cwd
	c.Env = []string{"HOME=" + cwd, "TMPDIR=" + cwd, "PATH=" + os.Getenv("PATH"), "NO_PROXY=127.0.0.1", measured + "=" + f.Name()}
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	begin := time.Now()
	err = c.Run()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		t.Fatal(err)
	}
	r := ran{code: c.ProcessState.ExitCode(), stdout: stdout.String(), stderr: stderr.String(), took: time.Since(begin)}
	if err := json.NewDecoder(f).Decode(&r.usage); err != nil {
		t.Fatalf("kubexm %v: %v\n%s", args, err, r.stderr)
	}
	return r
}

// said gives the codes that a run answered with, the first error's first.
func (r ran) said() []string {
	var codes []string
	for line := range strings.Lines(r.stdout) { // of install: an object a line
		var l struct{ Type, Code string }
		if json.Unmarshal([]byte(line), &l) == nil && l.Type == "error" {
			codes = append(codes, l.Code)
		}
	}
	var one struct{ Errors []struct{ Code string } }
	if json.Unmarshal([]byte(r.stdout), &one) == nil {
		for _, e := range one.Errors {
			codes = append(codes, e.Code)
		}
	}
	return codes
}

// snapshot is everything under a folder: names, modes, contents.
func snapshot(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, path)
		found[rel] = info.Mode().String()
		if info.Mode().IsRegular() {
			text, err := os.ReadFile(path)
			found[rel] += " " + digestOf(text)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
