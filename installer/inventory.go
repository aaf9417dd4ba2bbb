package installer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mensylisir/kubexm/bundle"
	"github.com/mensylisir/kubexm/installer/state"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/registry"
	"github.com/mensylisir/kubexm/steps/registryd"
)

// Inventory asks a site what it holds: the archives that lie on this machine
// (those that runs here have used, and others by their paths), the site's
// registry, and its hosts. Nothing is changed anywhere. What could not be asked is
// in the inventory, and in passed, each with its reason: hosts, a registry that
// does not answer, archives on record that are no longer what they were.
//
// Policy is asked about the archives that are named: what a forged one claims to
// hold, the site would lack. Those on record were asked about when they were used,
// and their roots are compared with the record.
func Inventory(ctx context.Context, o Options, bundles []string, policy bundle.Policy) (i *manifest.Inventory, passed []error, err error) {
	s, err := newSession(ctx, o)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	taken := time.Now().UTC().Truncate(time.Second)
	c := &census{session: s, out: &manifest.Inventory{Cluster: o.Cluster.Metadata.Name, Taken: &taken, Blobs: map[string]manifest.HeldIn{}}}
	if err := c.bundles(ctx, bundles, policy); err != nil {
		return nil, nil, err
	}
	failed, err := s.reachAll(ctx)
	if err != nil {
		return nil, nil, err
	}
	c.passed = append(c.passed, failed...)
	c.registry(ctx)
	c.hosts(ctx, failed)
	return c.out, c.passed, ctx.Err()
}

// GoneError says that an archive on record lies no more where it did. The site may
// have thrown it away on purpose: what it held is not counted, and that is all.
type GoneError struct{ Root, Path string }

func (e *GoneError) Error() string {
	return fmt.Sprintf("bundle %s is no more at %s, and does not count", e.Root, e.Path)
}

// census is one Inventory at work.
type census struct {
	session *Session
	out     *manifest.Inventory
	images  []manifest.ImagePin // of every lock that is known here
	passed  []error
}

// bundles looks at the archives. One that a person names has to be good; one on
// record may be gone, or be another by now.
func (c *census) bundles(ctx context.Context, named []string, policy bundle.Policy) error {
	kept, err := readKept(c.session.Workdir)
	if err != nil {
		c.passed = append(c.passed, err)
	}
	c.images = appliedImages(c.session.Workdir)
	if was, err := state.BundleHere(c.session.Workdir.Dir); err == nil { // a damaged record names none
		c.out.Applied = was
	}
	seen := map[string]bool{}
	for _, path := range named {
		if path, err = filepath.Abs(path); err != nil {
			return err
		}
		seen[path] = true
		if err := c.bundle(ctx, path, "", policy); err != nil {
			return err
		}
	}
	for _, k := range kept {
		if seen[k.Path] {
			continue
		}
		if _, err := os.Stat(k.Path); errors.Is(err, fs.ErrNotExist) {
			c.passed = append(c.passed, &GoneError{Root: k.Root, Path: k.Path})
			continue
		}
		if err := c.bundle(ctx, k.Path, k.Root, bundle.Policy{AllowUnsigned: true}); err != nil {
			c.passed = append(c.passed, fmt.Errorf("bundle %s, on record here, does not count: %w", k.Root, err))
		}
	}
	return nil
}

func (c *census) bundle(ctx context.Context, path, root string, policy bundle.Policy) (err error) {
	b, err := bundle.OpenPart(ctx, path, policy, bundle.Bases{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	if got := b.Root.Digest.String(); root != "" && got != root {
		return fmt.Errorf("%s is bundle %s by now", path, got)
	}
	if b.Lock.Cluster != c.out.Cluster {
		return fmt.Errorf("%s is a bundle of cluster %s, not %s", path, b.Lock.Cluster, c.out.Cluster)
	}
	blobs, err := b.Payload()
	if err != nil {
		return err
	}
	for _, x := range blobs {
		c.out.Blobs[x.Digest] = manifest.InBundle
	}
	c.out.Bundles = append(c.out.Bundles, manifest.HeldBundle{Root: b.Root.Digest.String(), File: filepath.Base(path), Bytes: b.Size(), Delta: b.Delta != nil})
	c.images = append(c.images, b.Lock.Images...)
	return nil
}

// registry asks the site's registry, whose answer may be that there is none.
func (c *census) registry(ctx context.Context) {
	r := &c.out.Registry
	r.Host, r.State = c.session.Cluster.Spec.Registry.PrivateRegistry, manifest.RegistrySilent
	t, err := c.session.registry()
	if errors.Is(err, registryd.ErrNone) {
		r.State = manifest.RegistryAbsent
		return
	}
	var found *registry.Holding
	if err == nil {
		found, err = registry.Survey(ctx, t, c.images, surveyors)
	}
	if err != nil {
		r.Reason = err.Error()
		c.passed = append(c.passed, fmt.Errorf("registry %s: %w", r.Host, err))
		return
	}
	r.State, r.Images = manifest.RegistryRunning, found.Images
	for d := range found.Layers {
		if strings.HasPrefix(d, "sha256:") {
			c.out.Blobs[d] = c.out.Blobs[d].And(manifest.InRegistry)
		}
	}
}

// programs are what a host is asked the versions of.
func programs() [][]string {
	out := [][]string{{"kubelet", "--version"}, {"kubeadm", "version", "-o", "short"}, {"kubectl", "version", "--client"}}
	for _, r := range part.Runtimes() { // a host has one of them
		out = append(out, []string{path.Base(r.Program), "--version"})
	}
	return append(out, []string{"runc", "--version"}, []string{"crictl", "--version"}, []string{"registry", "--version"}, []string{"helm", "version", "--short"})
}

// versionText is a version as programs print it, among other words.
var versionText = regexp.MustCompile(`\bv?\d+\.\d+\.\d+(?:[-+][0-9A-Za-z.-]+)?`)

// hosts tells what each host is and has.
func (c *census) hosts(ctx context.Context, failed HostErrors) {
	why := map[string]string{}
	for _, err := range failed {
		var h *HostError
		if errors.As(err, &h) {
			why[h.Host] = h.Err.Error()
		}
	}
	var mu sync.Mutex
	var g errgroup.Group
	g.SetLimit(max(c.session.Parallel, 1))
	for _, h := range c.session.Cluster.Spec.Hosts {
		g.Go(func() error {
			m := c.session.machine(ctx, h)
			m.Unreachable = why[h.Name]
			mu.Lock()
			defer mu.Unlock()
			c.out.Hosts = append(c.out.Hosts, m)
			return nil
		})
	}
	_ = g.Wait() // the functions above give no error
}

func (s *Session) machine(ctx context.Context, h manifest.Host) manifest.InventoryMachine {
	m := manifest.InventoryMachine{Name: h.Name}
	for _, role := range []string{manifest.RoleEtcd, manifest.RoleLoadBalancer, manifest.RoleMaster, manifest.RoleRegistry, manifest.RoleWorker} {
		if s.Cluster.Spec.RoleGroups.Has(role, h.Name) {
			m.Roles = append(m.Roles, role)
		}
	}
	host := s.Host(h)
	if host == nil {
		return m
	}
	f := host.Facts
	m.OS, m.Version, m.Arch, m.Kernel = f.OS.ID, f.OS.VersionID, f.Arch, f.Kernel
	m.Components = map[string]string{}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for _, argv := range programs() {
		out, err := host.Exec(ctx, argv...)
		if v := versionText.FindString(string(out)); err == nil && v != "" { // a program that is not there has no version
			m.Components[argv[0]] = v
		}
	}
	return m
}
