package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/mensylisir/kubexm/bundle"
)

// pushes are what pushes come to that nothing cuts, found out once.
type pushes struct {
	once    sync.Once
	dir     string
	archive string // signed
	key     string // the public one
	carried func(digest string) bool
	whole   map[string]*memoryRegistry // by command
	bytes   map[string][2]int64        // into an empty registry, and into one that has half
	err     error
}

func (p *pushes) ready(ctx context.Context, l *lab) error {
	p.once.Do(func() { p.err = p.make(ctx, l) })
	return p.err
}

// make signs a bundle and pushes it with nothing broken, twice in each way.
func (p *pushes) make(ctx context.Context, l *lab) error {
	archive, _, err := l.installable(ctx)
	if err != nil {
		return err
	}
	k, err := l.keys(ctx)
	if err != nil {
		return err
	}
	p.dir, p.key = filepath.Join(l.dir, "pushes"), k.public
	p.archive = filepath.Join(p.dir, "demo.tar.zst")
	if err := os.MkdirAll(p.dir, 0o750); err != nil {
		return err
	}
	text, err := os.ReadFile(archive)
	if err != nil {
		return err
	}
	if err := os.WriteFile(p.archive, text, 0o600); err != nil {
		return err
	}
	s := &site{lab: l, root: p.dir}
	if r := s.run(ctx, "bundle", "sign", "--sign-key", k.private, "--key-password-file", k.password, p.archive); r.code != 0 {
		return fmt.Errorf("sign: %s", r)
	}
	b, err := bundle.Open(ctx, p.archive, bundle.Policy{AllowUnsigned: true})
	if err != nil {
		return err
	}
	defer b.Close()
	inside := map[string]bool{}
	if err := below(b, b.Root, inside); err != nil {
		return err
	}
	p.carried = func(digest string) bool { return inside[digest] }
	p.whole, p.bytes = map[string]*memoryRegistry{}, map[string][2]int64{}
	for _, command := range []string{registryPush, bundlePush} {
		d := newMemoryRegistry(p.carried)
		empty, err := p.measure(ctx, s, d, command)
		if err != nil {
			return err
		}
		half, err := p.measure(ctx, s, d.half(), command)
		if err != nil {
			return err
		}
		p.whole[command], p.bytes[command] = d, [2]int64{empty, half}
	}
	return nil
}

// below notes the digest of everything that a bundle has below a descriptor.
func below(b *bundle.Bundle, d v1.Descriptor, inside map[string]bool) error {
	rc, _, err := b.Blob(d.Digest.String())
	if err != nil || inside[d.Digest.String()] {
		return nil //nolint:nilerr // an index names a platform that the bundle does not carry
	}
	defer rc.Close()
	if inside[d.Digest.String()] = true; !bundle.IsManifest(d.MediaType) {
		return nil
	}
	text, err := io.ReadAll(rc)
	if err != nil {
		return err
	}
	var m children
	if err := json.Unmarshal(text, &m); err != nil {
		return fmt.Errorf("%s: %w", d.Digest, err)
	}
	for _, c := range m.all() {
		if err := below(b, c, inside); err != nil {
			return err
		}
	}
	return nil
}

// children are what a manifest or an index names.
type children struct {
	Config    v1.Descriptor   `json:"config"`
	Layers    []v1.Descriptor `json:"layers"`
	Manifests []v1.Descriptor `json:"manifests"`
}

func (c children) all() []v1.Descriptor {
	out := slices.Concat(c.Layers, c.Manifests)
	if c.Config.Digest != "" {
		out = append(out, c.Config)
	}
	return out
}

// measure pushes with nothing broken, and gives the bytes that it takes.
func (p *pushes) measure(ctx context.Context, s *site, d *memoryRegistry, command string) (int64, error) {
	w, err := newWay(d) //nolint:contextcheck // it lasts as long as this
	if err != nil {
		return 0, err
	}
	defer w.close()
	if r := s.run(ctx, w.push(p, command)...); r.code != 0 {
		return 0, fmt.Errorf("%s with nothing broken: %s", command, r)
	}
	return w.proxy.carried(), d.sound()
}
