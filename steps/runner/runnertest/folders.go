package runnertest

import (
	"slices"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/mensylisir/kubexm/steps/runner"
)

func mkdir(_ *testing.T, b *bench) {
	made, err := b.r.Mkdir(b.ctx, b.path("one/two/three"), runner.Attr{Mode: 0o700})
	b.ok(err)
	if want := []string{b.path("one"), b.path("one/two"), b.path("one/two/three")}; !slices.Equal(made, want) {
		b.Fatalf("made %q, want %q", made, want)
	}
	b.has(b.path("one"), runner.Attr{Mode: 0o755})
	b.has(b.path("one/two/three"), runner.Attr{Mode: 0o700})
	made, err = b.r.Mkdir(b.ctx, b.path("one/two"), runner.Attr{Mode: 0o711})
	b.ok(err)
	if len(made) != 0 {
		b.Fatalf("made %q, which was there", made)
	}
	b.has(b.path("one/two"), runner.Attr{Mode: 0o711})
	b.ok(b.r.WriteFile(b.ctx, b.path("file"), nil, runner.Attr{}))
	_, err = b.r.Mkdir(b.ctx, b.path("file"), runner.Attr{})
	b.refused(err)
	_, err = b.r.Mkdir(b.ctx, b.path("file/below"), runner.Attr{})
	b.refused(err)
}

// mkdirs: of many parallel calls for the same folders, exactly one creates each folder.
func mkdirs(_ *testing.T, b *bench) {
	var mu sync.Mutex
	var all []string
	var g errgroup.Group
	for range 16 {
		g.Go(func() error {
			made, err := b.r.Mkdir(b.ctx, b.path("a/b/c/d"), runner.Attr{Mode: 0o700})
			mu.Lock()
			defer mu.Unlock()
			all = append(all, made...)
			return err
		})
	}
	b.ok(g.Wait())
	slices.Sort(all)
	if want := []string{b.path("a"), b.path("a/b"), b.path("a/b/c"), b.path("a/b/c/d")}; !slices.Equal(all, want) {
		b.Fatalf("made %q, want %q", all, want)
	}
	b.has(b.path("a/b"), runner.Attr{Mode: 0o755})
	b.has(b.path("a/b/c/d"), runner.Attr{Mode: 0o700})
}
