package components

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/gofrs/flock"
)

// Builder builds components into a cache.
type Builder struct {
	Root  string    // the checkout
	Cache string    // where what is built goes
	Log   io.Writer // a line for each component, and what a failing build said
	// Sysroot is a root file system of another architecture, with the libraries in C that
	// programs for it need. It is asked for where such a component is built.
	Sysroot string
}

// cross are the C compilers for other architectures, and Debian's packages of them.
var cross = map[string]struct{ compiler, libraries, packages string }{
	"arm64": {"aarch64-linux-gnu-gcc", "usr/lib/aarch64-linux-gnu", "gcc-aarch64-linux-gnu libc6-dev-arm64-cross"},
}

// DefaultCache is ${XDG_CACHE_HOME:-~/.cache}/kubexm-lab.
func DefaultCache() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "kubexm-lab"), nil
}

// Build builds each of all that the cache lacks, one after the other.
func (b *Builder) Build(ctx context.Context, all []Component) error {
	if err := os.MkdirAll(b.Cache, 0o755); err != nil {
		return err
	}
	lock := flock.New(filepath.Join(b.Cache, ".components.lock"))
	if _, err := lock.TryLockContext(ctx, time.Second); err != nil {
		return fmt.Errorf("wait for another build: %w", err)
	}
	defer lock.Unlock() //nolint:errcheck // nothing is left to do
	for _, c := range all {
		if err := b.one(ctx, c); err != nil {
			return fmt.Errorf("build %s %s: %w", c.Name, c.Version, err)
		}
	}
	return nil
}

// Ready reports whether the cache holds c as its row and modules are now.
func (b *Builder) Ready(ctx context.Context, c Component) (bool, error) {
	want, err := b.stamp(ctx, c)
	if err != nil {
		return false, err
	}
	have, err := os.ReadFile(filepath.Join(c.Dir(b.Cache), "stamp"))
	if os.IsNotExist(err) {
		return false, nil
	}
	return string(have) == want, err
}

func (b *Builder) one(ctx context.Context, c Component) error {
	begun := time.Now()
	if err := b.modules(ctx, c); err != nil {
		return err
	}
	ready, err := b.Ready(ctx, c)
	if err != nil || ready {
		return err
	}
	packages := c.Packages
	if c.CGO && c.GOARCH() != runtime.GOARCH {
		packages = append(strings.Fields(cross[c.GOARCH()].packages), "pkg-config")
	}
	if err := need(packages); err != nil {
		return err
	}
	dir := c.Dir(b.Cache)
	part := dir + ".part"
	if err := os.RemoveAll(part); err != nil {
		return err
	}
	if err := os.MkdirAll(part, 0o755); err != nil {
		return err
	}
	fmt.Fprintf(b.Log, "building %s %s for %s: %s\n", c.Name, c.Version, c.GOARCH(), strings.Join(c.names(), " "))
	if err := b.programs(ctx, c, part); err != nil {
		return err
	}
	if err := b.files(ctx, c, part); err != nil {
		return err
	}
	stamp, err := b.stamp(ctx, c)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(part, "stamp"), []byte(stamp), 0o644); err != nil {
		return err
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.Rename(part, dir); err != nil {
		return err
	}
	fmt.Fprintf(b.Log, "built %s %s in %s\n", c.Name, c.Version, time.Since(begun).Round(time.Second))
	return nil
}

// programs builds all programs of c, one after another: go's cache has what they share.
func (b *Builder) programs(ctx context.Context, c Component, into string) error {
	mod := []string{}
	if c.Add != "" || len(c.Edits) > 0 {
		dir, err := b.changed(ctx, c)
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		mod = append(mod, "-modfile="+filepath.Join(dir, "go.mod"))
	}
	for _, name := range c.names() {
		args := append([]string{"build", "-trimpath", "-buildvcs=false"}, mod...)
		args = append(args, "-tags", c.Tags, "-ldflags", c.ldflags(), "-o", filepath.Join(into, name), c.Programs[name])
		if err := b.run(b.goCommand(ctx, c, args...)); err != nil {
			return err
		}
	}
	return nil
}

// files copies what c takes from its module as it stands.
func (b *Builder) files(ctx context.Context, c Component, into string) error {
	if len(c.Files)+len(c.Trees) == 0 {
		return nil
	}
	module, err := b.moduleDir(ctx, c)
	if err != nil {
		return err
	}
	for name, path := range c.Files {
		content, err := os.ReadFile(filepath.Join(module, path))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(into, name), content, 0o644); err != nil {
			return err
		}
	}
	for name, path := range c.Trees {
		if err := copyTree(filepath.Join(module, path), filepath.Join(into, name)); err != nil {
			return err
		}
	}
	return nil
}

// goCommand runs go at a low priority in the component's folder.
func (b *Builder) goCommand(ctx context.Context, c Component, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "nice", append([]string{"-n", "10", "go"}, args...)...)
	cmd.Dir = b.folder(c)
	cgo := "0"
	if c.CGO {
		cgo = "1"
	}
	cmd.Env = append(os.Environ(), "CGO_ENABLED="+cgo, "GOFLAGS=", "GOWORK=off", "GOARCH="+c.GOARCH())
	if x, ok := cross[c.GOARCH()]; ok && c.GOARCH() != runtime.GOARCH {
		// The compiler has a C library of its own, and takes what else there is of the root's.
		cmd.Env = append(cmd.Env, "CC="+x.compiler, "PKG_CONFIG_SYSROOT_DIR="+b.Sysroot,
			"PKG_CONFIG_LIBDIR="+filepath.Join(b.Sysroot, x.libraries, "pkgconfig"))
	}
	return cmd
}

// run runs cmd and shows what it said only when it fails.
func (b *Builder) run(cmd *exec.Cmd) error {
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Run(); err != nil {
		fmt.Fprintf(b.Log, "%s\n", strings.TrimSpace(said.String()))
		return fmt.Errorf("%s: %w", strings.Join(cmd.Args[3:min(len(cmd.Args), 5)], " "), err)
	}
	return nil
}

// stamp is a digest of everything that decides what is built.
func (b *Builder) stamp(ctx context.Context, c Component) (string, error) {
	h := sha256.New()
	row, err := json.Marshal(c)
	if err != nil {
		return "", err
	}
	h.Write(row)
	fmt.Fprintln(h, c.GOARCH())
	version := exec.CommandContext(ctx, "go", "env", "GOVERSION")
	version.Dir = b.Root
	release, err := version.Output()
	if err != nil {
		return "", fmt.Errorf("go env: %w", err)
	}
	fmt.Fprintln(h, minorOf(strings.TrimSpace(string(release))))
	from := []string{"go.mod", "go.sum"}
	if c.Add != "" {
		from = append(from, c.Add)
	}
	if c.Module == "" {
		if from, err = sources(b.folder(c)); err != nil {
			return "", err
		}
	}
	for _, name := range from {
		content, err := os.ReadFile(filepath.Join(b.folder(c), name))
		if err != nil {
			return "", err
		}
		fmt.Fprintf(h, "%s %d\n", name, len(content))
		h.Write(content)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// sources lists the Go files of a program of the lab's own, but its tests.
func sources(dir string) (names []string, err error) {
	all, err := os.ReadDir(dir)
	for _, e := range all {
		if strings.HasSuffix(e.Name(), ".go") && !strings.HasSuffix(e.Name(), "_test.go") {
			names = append(names, e.Name())
		}
	}
	return names, err
}

// minorOf gives go1.26 for go1.26.8: a patch release of Go is no reason to
// compile Kubernetes anew for a lab.
func minorOf(release string) string {
	parts := strings.SplitN(release, ".", 3)
	return strings.Join(parts[:min(2, len(parts))], ".")
}

// need says which of Debian's packages are to be installed first.
func need(packages []string) error {
	var lacking []string
	for _, p := range packages {
		if exec.Command("dpkg-query", "-s", p).Run() != nil {
			lacking = append(lacking, p)
		}
	}
	if len(lacking) > 0 {
		return fmt.Errorf("it needs packages of the system: apt-get install %s", strings.Join(lacking, " "))
	}
	return nil
}
