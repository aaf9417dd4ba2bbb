package mirror

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/packaging/apt"
	"github.com/mensylisir/kubexm/packaging/system"
	"github.com/mensylisir/kubexm/versions"
)

// Host is the name that the mirror of Debian 12 is served by.
const Host = "packages.lab.test"

// maxAge is how long a mirror is kept: a signed Release is good for a week.
const maxAge = 3 * 24 * time.Hour

// Extra are packages in the mirror beside those that every host gets.
var Extra = []string{"tcpdump", "haproxy", "keepalived", "nginx", "libnginx-mod-stream"}

// ofImages are packages in the mirror of Debian 12 whose programs are in images alone.
var ofImages = []string{"bird", "bpftool", "clang-16", "runit"}

// Mirror is a part of the machine's own package repositories, for one release of
// Debian and amd64.
type Mirror struct{ dir, release string }

// Open gives the mirror of Debian 12 in a cache. It is made by Make.
func Open(cache string) Mirror { return Mirror{filepath.Join(cache, "mirror"), "12"} }

// suites are the releases that there may be mirrors of, by the names that archives
// have for them.
var suites = map[string]string{"12": "bookworm", "13": "trixie"}

// Release gives the mirror of a release, as it is in /etc/os-release. Make makes 12
// alone, and MakeRelease any.
func Release(cache, release string) Mirror {
	if release == "12" {
		return Open(cache)
	}
	return Mirror{filepath.Join(cache, "mirror-"+release), release}
}

// Address is the name that the mirror is served by.
func (m Mirror) Address() string {
	if m.release == "12" {
		return Host
	}
	return m.release + "." + Host
}

// Files is the folder that is served as https://Address/.
func (m Mirror) Files() string { return filepath.Join(m.dir, "files") }

// Sources gives lines of sources.list that lead to Address.
func (m Mirror) Sources() ([]string, error) {
	text, err := os.ReadFile(filepath.Join(m.dir, "sources.list"))
	if err != nil {
		return nil, fmt.Errorf("the lab has no mirror of Debian %s; make lab-components makes that of 12, make hosts all: %w", m.release, err)
	}
	return strings.Split(strings.TrimSpace(string(text)), "\n"), nil
}

// Package gives the file of a package, of which there is one version.
func (m Mirror) Package(name string) (string, error) {
	var found []string
	err := filepath.WalkDir(m.Files(), func(file string, _ fs.DirEntry, err error) error {
		if base := filepath.Base(file); err == nil && strings.HasPrefix(base, name+"_") && strings.HasSuffix(base, ".deb") {
			found = append(found, file)
		}
		return err
	})
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("the lab has no mirror of Debian %s; make lab-components makes that of 12: %w", m.release, err)
	case err != nil:
		return "", err
	case len(found) != 1:
		return "", fmt.Errorf("the lab's mirror of Debian %s has %d packages %s", m.release, len(found), name)
	}
	return found[0], nil
}

// fresh reports whether the mirror is whole, of these packages, and not old.
func (m Mirror) fresh(want []string) bool {
	info, err := os.Stat(filepath.Join(m.dir, "want"))
	if err != nil || time.Since(info.ModTime()) > maxAge {
		return false
	}
	text, err := os.ReadFile(filepath.Join(m.dir, "want"))
	return err == nil && string(text) == strings.Join(want, "\n")
}

// Make brings the mirror of Debian 12, where it is not there or too old.
func Make(ctx context.Context, cache string, log io.Writer) error {
	return MakeRelease(ctx, cache, "12", log)
}

// MakeRelease brings the mirror of a release, where it is not there or too old. The
// release has to be in the archives that this machine takes its own from.
func MakeRelease(ctx context.Context, cache, release string, log io.Writer) error {
	m := Release(cache, release)
	if suites[release] == "" {
		return fmt.Errorf("no mirror of Debian %s", release)
	}
	a, err := wanted(release)
	if err != nil {
		return err
	}
	if m.fresh(a.Packages.Want) {
		return nil
	}
	fmt.Fprintln(log, "bring a part of the machine's own package repositories")
	next := Mirror{m.dir + ".part", release}
	if err := os.RemoveAll(next.dir); err != nil {
		return err
	}
	if err := next.fill(ctx, a); err != nil {
		return errors.Join(fmt.Errorf("bring packages: %w", err), os.RemoveAll(next.dir))
	}
	if err := os.RemoveAll(m.dir); err != nil {
		return err
	}
	return os.Rename(next.dir, m.dir)
}

// wanted is what a config of the lab's asks for.
func wanted(release string) (manifest.Artifact, error) {
	catalog, problems := versions.Load()
	if err := problems.Err(); err != nil {
		return manifest.Artifact{}, err
	}
	debs := slices.Clone(Extra)
	if release == "12" {
		debs = append(debs, ofImages...)
	}
	c, problems := manifest.Decode(strings.NewReader(`apiVersion: kubexm.mensylisir.io/v1alpha1
kind: Cluster
metadata: {name: mirror}
spec:
  kubernetes: {version: v1.34.10}
  network: {plugin: flannel}
  system: {debs: [` + strings.Join(debs, ", ") + `]}
  bundle:
    platforms: [linux/amd64]
    operatingSystems: [{name: debian, releases: ["` + release + `"]}]
`))
	if err := problems.Err(); err != nil {
		return manifest.Artifact{}, err
	}
	lock, problems := catalog.Resolve(c)
	if err := problems.Err(); err != nil {
		return manifest.Artifact{}, err
	}
	return lock.Repository(manifest.Need{Kind: manifest.Packages, Name: "debian-" + release}, manifest.Platform{OS: "linux", Arch: "amd64"})
}

func (m Mirror) fill(ctx context.Context, a manifest.Artifact) error {
	sources, problems := apt.ReadFolder("/etc/apt")
	err := problems.Err()
	if err != nil {
		return err
	}
	if m.release != "12" {
		if sources, err = m.others(sources); err != nil {
			return err
		}
		for _, s := range sources {
			a.Packages.Sources = append(a.Packages.Sources, line(s, s.URI))
		}
	}
	web := &recorder{dir: m.Files()}
	for _, s := range sources {
		if !slices.Contains(web.bases, s.URI) {
			web.bases = append(web.bases, s.URI)
		}
	}
	pinned, _, err := system.Pin(ctx, web, a, system.Options{})
	if err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(4)
	for _, p := range pinned.Members {
		if p.Address != "" {
			g.Go(func() error { return web.bring(ctx, p) })
		}
	}
	if err := g.Wait(); err != nil {
		return err
	}
	var lines strings.Builder
	for _, s := range sources {
		if slices.ContainsFunc(pinned.Packages.Repositories, func(read string) bool { return strings.HasPrefix(read, s.String()+" ") }) {
			lines.WriteString(line(s, fmt.Sprintf("https://%s/%d", m.Address(), slices.Index(web.bases, s.URI))) + "\n")
		}
	}
	if lines.Len() == 0 {
		return fmt.Errorf("none of %v is of this machine's sources", pinned.Packages.Repositories)
	}
	if err := os.WriteFile(filepath.Join(m.dir, "sources.list"), []byte(lines.String()), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(m.dir, "want"), []byte(strings.Join(a.Packages.Want, "\n")), 0o644)
}

// others are the sources of another release, in the archives of the machine's own.
func (m Mirror) others(own []apt.Source) ([]apt.Source, error) {
	var out []apt.Source
	for _, s := range own {
		if rest, ok := strings.CutPrefix(s.Suite, suites["12"]); ok && (rest == "" || rest[0] == '-') {
			s.Suite = suites[m.release] + rest
			out = append(out, s)
		}
	}
	if len(out) == 0 {
		return nil, errors.New("none of this machine's package sources is Debian 12's")
	}
	return out, nil
}

// line gives a source as a line of sources.list, at an address.
func line(s apt.Source, at string) string {
	signed := ""
	if len(s.SignedBy.Files) > 0 {
		signed = "[signed-by=" + strings.Join(s.SignedBy.Files, ",") + "] "
	}
	return "deb " + signed + at + " " + s.Suite + " " + strings.Join(s.Components, " ")
}

// bring keeps the file of one package.
func (r *recorder) bring(ctx context.Context, p manifest.Member) error {
	if r.place(p.Address) == "" {
		return fmt.Errorf("%s is of no archive", p.Address)
	}
	f, err := r.Open(ctx, p.Address)
	if err != nil {
		return err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return err
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != p.SHA256 {
		return fmt.Errorf("%s has sha256 %s, not %s", p.Package, got, p.SHA256)
	}
	return nil
}
