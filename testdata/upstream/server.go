package upstream

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/distribution/reference"
	"golang.org/x/sync/errgroup"

	"github.com/mensylisir/kubexm/manifest"
)

// Options configure a Server. The zero value is that of the quickstart.
type Options struct {
	// Scale multiplies every size: 0 means 1. Then a program has 1 to 6 MiB and a layer 0.2 to
	// 4 MiB.
	Scale float64
	// Single lists references that are published as one manifest without an
	// index, for the first platform of the lock.
	Single []string
	// Login, if set, is required by the registry to issue a token.
	Login *Login
	// Real is served instead of stand-ins, as far as it has content.
	Real Real
}

// Server serves stand-ins for the artifacts of a lock. It is an http.Handler; all of its
// methods may be called while it serves.
type Server struct {
	o Options

	mu      sync.Mutex
	lock    *manifest.Lock      // with the stand-ins' digests
	files   map[string]file     // by path
	sums    map[string][]string // path of a digest file → the paths of its files
	repos   map[string]*repository
	faults  map[string]*Fault
	counts  map[string]Count
	genuine map[string]bool     // references of images that are not stand-ins
	folders map[string]*os.Root // by the path prefix of a folder's files, with a trailing slash
}

// repository is one image name in the registry.
type repository struct {
	tags      map[string]string   // tag → digest
	manifests map[string]document // by digest
	blobs     map[string]Content  // by digest
}

// New creates the stand-ins for every artifact and image of lock, which needs no sizes or
// digests and is not changed.
func New(ctx context.Context, lock *manifest.Lock, o Options) (*Server, error) {
	if o.Scale == 0 {
		o.Scale = 1
	}
	s := &Server{
		o: o, lock: clone(lock), files: map[string]file{}, sums: map[string][]string{},
		repos: map[string]*repository{}, faults: map[string]*Fault{}, counts: map[string]Count{},
		genuine: map[string]bool{}, folders: map[string]*os.Root{},
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for _, of := range byAddress(s.lock.Artifacts) {
		g.Go(func() error { return unless(ctx, func() error { return s.putFile(of, "") }) })
	}
	for i := range s.lock.Images {
		g.Go(func() error { return unless(ctx, func() error { return s.putImage(&s.lock.Images[i], "") }) })
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	return s, nil
}

// unless runs next, unless ctx has ended.
func unless(ctx context.Context, next func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return next()
}

// Lock returns the lock with the size and digest of every stand-in, as a catalog with these
// facts would pin it.
func (s *Server) Lock() *manifest.Lock {
	s.mu.Lock()
	defer s.mu.Unlock()
	return clone(s.lock)
}

// Change replaces what is published at address. For a file's address it serves other bytes, of
// the same length unless it is an archive, with a matching digest file. For an image's
// reference it moves the tag to another image; the old one remains available by digest. Lock
// then returns the new digests. Each salt creates different content; an empty salt publishes the
// original is published again. It reports whether the address is known.
func (s *Server) Change(address, salt string) (bool, error) {
	s.mu.Lock()
	l := clone(s.lock)
	s.mu.Unlock()
	if of := byAddress(l.Artifacts)[address]; of != nil {
		err := s.putFile(of, salt)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.lock.Artifacts = l.Artifacts
		return true, err
	}
	for i := range l.Images {
		if l.Images[i].Reference == address {
			err := s.putImage(&l.Images[i], salt)
			s.mu.Lock()
			defer s.mu.Unlock()
			s.lock.Images[i] = l.Images[i]
			return true, err
		}
	}
	return false, nil
}

// byAddress groups artifacts by their file: two artifacts may use different entries of one
// archive. Package repositories have no single file: a Folder serves them.
func byAddress(all []manifest.Artifact) map[string][]*manifest.Artifact {
	of := map[string][]*manifest.Artifact{}
	for i := range all {
		if all[i].Kind == manifest.Packages {
			continue
		}
		of[all[i].Address] = append(of[all[i].Address], &all[i])
	}
	return of
}

// putFile creates the stand-in of the file for all artifacts in as, and serves it from now on.
func (s *Server) putFile(as []*manifest.Artifact, salt string) error {
	a := *as[0]
	at, err := where(a.Address)
	if err != nil {
		return fmt.Errorf("%s: %w", a.ID, err)
	}
	a.Members = nil
	for _, one := range as {
		a.Members = append(a.Members, one.Members...)
	}
	slices.SortFunc(a.Members, func(x, y manifest.Member) int { return strings.Compare(x.Path, y.Path) })
	a.Members = slices.CompactFunc(a.Members, func(x, y manifest.Member) bool { return x.Path == y.Path })
	f, found, err := s.o.Real.file(&a)
	if err == nil && (!found || salt != "") {
		f, err = makeFile(&a, salt, s.o.Scale)
	}
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files[at] = f
	for _, one := range as {
		one.Size, one.SHA256, one.Trust = a.Size, a.SHA256, manifest.FromCatalog
		for i, m := range one.Members {
			j := slices.IndexFunc(a.Members, func(x manifest.Member) bool { return x.Path == m.Path })
			one.Members[i].Size, one.Members[i].SHA256 = a.Members[j].Size, a.Members[j].SHA256
		}
	}
	if a.DigestAddress == "" {
		return nil
	}
	sums, err := where(a.DigestAddress)
	if err != nil {
		return fmt.Errorf("%s: digest: %w", a.ID, err)
	}
	if !slices.Contains(s.sums[sums], at) {
		s.sums[sums] = append(s.sums[sums], at)
		slices.Sort(s.sums[sums])
	}
	return nil
}

// putImage creates the stand-in of p and serves it from now on.
func (s *Server) putImage(p *manifest.ImagePin, salt string) error {
	ref, err := reference.ParseNormalizedNamed(p.Reference)
	if err != nil {
		return fmt.Errorf("image %q: %w", p.Reference, err)
	}
	tagged, ok := reference.TagNameOnly(ref).(reference.NamedTagged)
	if _, pinned := ref.(reference.Digested); pinned || !ok {
		return fmt.Errorf("image %q: no stand-in has a digest that was chosen before; name a tag", p.Reference)
	}
	form := shapeOf(p.Reference)
	form.single = slices.Contains(s.o.Single, p.Reference)
	img, err := s.o.Real.image(p.Reference)
	genuine := img != nil && salt == ""
	if err == nil && !genuine {
		img, err = makeImage(p.Reference, salt, s.platforms(), form, s.o.Scale)
	}
	if err != nil {
		return fmt.Errorf("image %q: %w", p.Reference, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.genuine[p.Reference] = genuine
	s.tag(tagged, img, img.digest())
	p.MediaType, p.Digest, p.Size = img.media, img.digest(), int64(len(img.document))
	p.Trust = manifest.FromCatalog
	p.Platforms = slices.DeleteFunc(img.platforms, func(q manifest.PlatformImage) bool {
		return len(s.lock.Platforms) > 0 && !slices.Contains(s.lock.Platforms, q.Platform)
	})
	return nil
}

// platforms returns the platforms of images: always the two common ones, and those that the
// lock requires.
func (s *Server) platforms() []manifest.Platform {
	list := []manifest.Platform{{OS: "linux", Arch: "amd64"}, {OS: "linux", Arch: "arm64"}}
	for i, p := range s.lock.Platforms {
		p = manifest.Platform{OS: p.OS, Arch: p.Arch}
		switch at := slices.Index(list, p); {
		case at < 0:
			list = append(list, p)
		case i == 0:
			list[0], list[at] = list[at], list[0] // an image with a single manifest is for the lock's first platform
		}
	}
	return list
}

// Hosts returns every host that the server replaces, sorted.
func (s *Server) Hosts() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var hosts []string
	add := func(path string) { hosts = append(hosts, strings.SplitN(strings.TrimPrefix(path, "/"), "/", 2)[0]) }
	for at := range s.files {
		add(at)
	}
	for at := range s.sums {
		add(at)
	}
	for name := range s.repos {
		add(name)
	}
	for at := range s.folders {
		add(at)
	}
	slices.Sort(hosts)
	return slices.Compact(hosts)
}

// Run serves on l until ctx ends, then closes every connection.
func (s *Server) Run(ctx context.Context, l net.Listener) error {
	h := &http.Server{
		Handler: s, ReadHeaderTimeout: time.Minute,
		BaseContext: func(net.Listener) context.Context { return ctx },
		ErrorLog:    slog.NewLogLogger(slog.DiscardHandler, slog.LevelError), // clients may disconnect at any time
	}
	stop := context.AfterFunc(ctx, func() { _ = h.Close() })
	defer stop()
	if err := h.Serve(l); ctx.Err() == nil {
		return fmt.Errorf("serve the upstream: %w", err)
	}
	return nil
}

// clone copies the parts of l that this package changes.
func clone(l *manifest.Lock) *manifest.Lock {
	c := *l
	c.Artifacts = slices.Clone(l.Artifacts)
	for i := range c.Artifacts {
		c.Artifacts[i].Members = slices.Clone(l.Artifacts[i].Members)
	}
	c.Images = slices.Clone(l.Images)
	return &c
}
