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

// Inventory collects what a site has: the archives on this machine (those that earlier runs
// used, and others by their paths), the site's registry, and its hosts. It changes nothing.
// What could not be queried is in the inventory and in passed, each with its reason: hosts, a
// registry that does not answer, recorded archives that have changed.
//
// policy applies to the archives in bundles: the site would lack whatever a forged archive
// claims to contain. Recorded archives were verified when they were used, and their roots are
// compared with the record.
func Inventory(ctx context.Context, o Options, bundles []string, policy bundle.Policy) (i *manifest.Inventory, passed []error, err error) {
	s, err := newSession(ctx, o)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	taken := time.Now().UTC().Truncate(time.Second)
	c := &census{session: s, out: &manifest.Inventory{Cluster: o.Cluster.Metadata.Name, Taken: &taken, Blobs: map[string]manifest.BlobLocation{}}}
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

// MissingArchiveError reports that a recorded archive is no longer at its path. The site may
// have deleted it on purpose: its content is not counted, and the inventory continues.
type MissingArchiveError struct{ Root, Path string }

func (e *MissingArchiveError) Error() string {
	return fmt.Sprintf("bundle %s is no longer at %s and is not counted", e.Root, e.Path)
}

// census is one running Inventory.
type census struct {
	session *Session
	out     *manifest.Inventory
	images  []manifest.ImagePin // of every lock known on this machine
	passed  []error
}

// bundles reads the archives. An archive that the user lists must be valid; a recorded one may
// be missing or replaced.
func (c *census) bundles(ctx context.Context, named []string, policy bundle.Policy) error {
	kept, err := readUsed(c.session.Workdir)
	if err != nil {
		c.passed = append(c.passed, err)
	}
	c.images = appliedImages(c.session.Workdir)
	if was, err := state.BundleHere(c.session.Workdir.Dir); err == nil { // a damaged record lists none
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
			c.passed = append(c.passed, &MissingArchiveError{Root: k.Root, Path: k.Path})
			continue
		}
		if err := c.bundle(ctx, k.Path, k.Root, bundle.Policy{AllowUnsigned: true}); err != nil {
			c.passed = append(c.passed, fmt.Errorf("bundle %s, recorded on this machine, is not counted: %w", k.Root, err))
		}
	}
	return nil
}

func (c *census) bundle(ctx context.Context, path, root string, policy bundle.Policy) (err error) {
	b, err := bundle.OpenPartial(ctx, path, policy, bundle.Bases{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	if got := b.Root.Digest.String(); root != "" && got != root {
		return fmt.Errorf("%s is now bundle %s", path, got)
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
	c.out.Bundles = append(c.out.Bundles, manifest.InventoryBundle{Root: b.Root.Digest.String(), File: filepath.Base(path), Bytes: b.Size(), Delta: b.Delta != nil})
	c.images = append(c.images, b.Lock.Images...)
	return nil
}

// registry queries the site's registry, if there is one.
func (c *census) registry(ctx context.Context) {
	r := &c.out.Registry
	r.Host, r.State = c.session.Cluster.Spec.Registry.PrivateRegistry, manifest.RegistrySilent
	t, err := c.session.registry()
	if errors.Is(err, registryd.ErrNone) {
		r.State = manifest.RegistryAbsent
		return
	}
	var found *registry.SurveyResult
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

// programs are the commands that report versions on a host.
func programs() [][]string {
	out := [][]string{{"kubelet", "--version"}, {"kubeadm", "version", "-o", "short"}, {"kubectl", "version", "--client"}}
	for _, r := range part.Runtimes() { // a host has only one of them
		out = append(out, []string{path.Base(r.Program), "--version"})
	}
	return append(out, []string{"runc", "--version"}, []string{"crictl", "--version"}, []string{"registry", "--version"}, []string{"helm", "version", "--short"})
}

// versionText matches a version in the output of a program.
var versionText = regexp.MustCompile(`\bv?\d+\.\d+\.\d+(?:[-+][0-9A-Za-z.-]+)?`)

// hosts adds the facts and versions of each host.
func (c *census) hosts(ctx context.Context, failed HostErrors) {
	why := failed.byHost()
	var mu sync.Mutex
	var g errgroup.Group
	g.SetLimit(max(c.session.Parallel, 1))
	for _, h := range c.session.Cluster.Spec.Hosts {
		g.Go(func() error {
			m := c.session.machine(ctx, h)
			if e := why[h.Name]; e != nil {
				m.Unreachable = e.Err.Error()
			}
			mu.Lock()
			defer mu.Unlock()
			c.out.Hosts = append(c.out.Hosts, m)
			return nil
		})
	}
	_ = g.Wait() // the functions above return no error
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
		if v := versionText.FindString(string(out)); err == nil && v != "" { // a missing program has no version
			m.Components[argv[0]] = v
		}
	}
	return m
}
