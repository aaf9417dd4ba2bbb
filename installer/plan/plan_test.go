package plan

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
)

type step struct{ m steps.Meta }

func (s step) Meta() steps.Meta { return s.m }
func (step) Precheck(context.Context, *steps.Host) (steps.Verdict, error) {
	return steps.Todo, nil
}
func (step) Run(context.Context, *steps.Host) error      { return nil }
func (step) Rollback(context.Context, *steps.Host) error { return nil }

func named(name string) steps.Step { return step{steps.Meta{Name: name}} }

func hosts(names ...string) []manifest.Host {
	var hs []manifest.Host
	for _, n := range names {
		hs = append(hs, manifest.Host{Name: n, Arch: "amd64"})
	}
	return hs
}

func task(name string, plan func(Scope) Fragment) Task { return Task{Name: name, Plan: plan} }

func pipeline(ts ...Task) Pipeline {
	return Pipeline{Name: "test", Modules: []Module{{Name: "m", Plan: Sequential(ts...)}}}
}

// TestChecksAreLeftOut: what waited for a check that is left out waits for what that waited
// for, and a check that a task puts in all the same is refused.
func TestChecksAreLeftOut(t *testing.T) {
	shape := func(skip ...string) string {
		g, err := Build(pipeline(task("t", func(s Scope) Fragment {
			return Seq(
				On(hosts("a"), named("first")),
				Par(On(hosts("a"), s.Checks(named("one"), named("two"), named("three"))...), On(hosts("a"), s.Checks(named("beside"))...)),
				On(hosts("a"), named("last")),
			)
		})), Scope{Skip: skip})
		if err != nil {
			return err.Error()
		}
		var out []string
		for _, n := range g.Nodes {
			line := strings.TrimPrefix(n.ID, "m/t/")
			for _, d := range n.Deps {
				line += " " + map[bool]string{true: "lane:", false: "after:"}[d.Lane] + strings.TrimPrefix(d.On.ID, "m/t/")
			}
			out = append(out, line)
		}
		return strings.Join(out, ", ")
	}
	for _, c := range []struct {
		skip []string
		want string
	}{
		{nil, "first, one after:first, two lane:one, three lane:two, beside after:first, last after:three after:beside"},
		{[]string{"two"}, "first, one after:first, three lane:one, beside after:first, last after:three after:beside"},
		{[]string{"one", "two"}, "first, three after:first, beside after:first, last after:three after:beside"},
		{[]string{"three", "beside"}, "first, one after:first, two lane:one, last after:two"},
		{[]string{"one", "two", "three", "beside"}, "first, last after:first"},
		{[]string{"last"}, "plan test: m/t/last cannot be left out: its task does not call Scope.Checks"},
	} {
		if got := shape(c.skip...); got != c.want {
			t.Errorf("without %v: %s, want %s", c.skip, got, c.want)
		}
	}
}

func TestCombinators(t *testing.T) {
	p := pipeline(task("t", func(Scope) Fragment {
		return Seq(
			On(hosts("a", "b"), named("one"), named("two")),
			On(nil, named("nowhere")),
			Par(On(hosts("a"), named("left")), On(hosts("b"), named("right"))),
			Roll(hosts("a", "b"), func(h manifest.Host) Fragment { return On([]manifest.Host{h}, named("roll")) }),
		)
	}))
	g, err := Build(p, Scope{})
	if err != nil {
		t.Fatal(err)
	}
	want := `test: 6 steps
m/t/one  on a, b
m/t/two  on a, b
    lane  m/t/one
m/t/left  on a
    after m/t/two
m/t/right  on b
    after m/t/two
m/t/roll[a]  on a
    after m/t/left
    after m/t/right
m/t/roll[b]  on b
    after m/t/roll[a]
`
	if got := g.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestModuleJoinsItsTasks(t *testing.T) {
	on := func(name string) Task {
		return task(name, func(Scope) Fragment { return On(hosts("h"), named(name)) })
	}
	never := on("never")
	never.When = func(Scope) bool { return false }
	m := Module{Name: "m", Plan: func(do func(Task) Fragment) Fragment { return Par(do(on("a")), do(never), do(on("b"))) }}
	g, err := Build(Pipeline{Name: "p", Modules: []Module{m}}, Scope{})
	if err != nil {
		t.Fatal(err)
	}
	if len(g.Nodes) != 2 || len(g.Nodes[1].Deps) != 0 {
		t.Errorf("%s", g)
	}
}

func TestBuildRefuses(t *testing.T) {
	key := steps.NewKey[string]("token")
	reads := step{steps.Meta{Name: "reads", Reads: []steps.AnyKey{key}}}
	writes := step{steps.Meta{Name: "writes", Writes: []steps.AnyKey{key}}}
	for name, c := range map[string]struct {
		plan func(Scope) Fragment
		want string
	}{
		"the same fragment twice": {func(Scope) Fragment { f := On(hosts("a"), named("x")); return Seq(f, f) }, "twice"},
		"two of one name":         {func(Scope) Fragment { return On(hosts("a"), named("x"), named("x")) }, "two steps are called m/t/x"},
		"a rolled name twice": {func(Scope) Fragment {
			return Roll(hosts("a"), func(h manifest.Host) Fragment { return On([]manifest.Host{h}, named("x"), named("x")) })
		}, "two steps are called m/t/x[a]"},
		"nobody writes":      {func(Scope) Fragment { return On(hosts("a"), reads) }, "reads token, which no step before it writes"},
		"written beside":     {func(Scope) Fragment { return Par(On(hosts("a"), writes), On(hosts("b"), reads)) }, "reads token"},
		"written afterwards": {func(Scope) Fragment { return On(hosts("a"), reads, writes) }, "reads token"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Build(pipeline(task("t", c.plan)), Scope{})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
	if _, err := Build(pipeline(task("t", func(Scope) Fragment { return On(hosts("a"), writes, named("between"), reads) })), Scope{}); err != nil {
		t.Errorf("an output that passes a step by: %v", err)
	}
}

func TestCheckBundleNamesStepHostAndArtifact(t *testing.T) {
	amd64 := manifest.Platform{OS: "linux", Arch: "amd64"}
	l := &manifest.Lock{
		Sets:      []manifest.Set{{Name: "v1"}},
		Artifacts: []manifest.Artifact{{Kind: manifest.Binary, Name: "kubelet", Platform: amd64, Sets: []string{"v1"}}},
		Images:    []manifest.ImagePin{{Names: []string{"pause"}, Sets: []string{"v1"}, Platforms: []manifest.PlatformImage{{Platform: amd64}}}},
	}
	needs := step{steps.Meta{Name: "kubelet.install", Needs: []manifest.Need{{Kind: manifest.Binary, Name: "kubelet"}, {Kind: manifest.Image, Name: "pause"}}}}
	hs := append(hosts("n1"), manifest.Host{Name: "n2", Arch: "arm64"})
	g, err := Build(pipeline(task("t", func(Scope) Fragment { return On(hs, needs) })), Scope{})
	if err != nil {
		t.Fatal(err)
	}
	var lack *MissingArtifactsError
	if err := g.CheckBundle(l, ""); !errors.As(err, &lack) || len(lack.Artifacts) != 2 {
		t.Fatalf("%v", err)
	}
	for _, want := range []string{"binary kubelet for linux/arm64: step kubelet.install on n2", "image pause for linux/arm64"} {
		if !strings.Contains(lack.Error(), want) {
			t.Errorf("%q is not in %v", want, lack)
		}
	}
	g.Nodes[0].Hosts = hs[:1]
	looks := needs // a check of what all hosts together are going to get
	looks.m.ReadOnly = true
	g.Nodes = append(g.Nodes, &Node{ID: "looks", Step: looks, Hosts: hs})
	if err := g.CheckBundle(l, "v1"); err != nil {
		t.Errorf("complete: %v", err)
	}
	if err := g.CheckBundle(l, "v2"); err == nil {
		t.Error("another set is complete too")
	}
}

func TestScopeNarrows(t *testing.T) {
	c := &manifest.Cluster{}
	c.Spec.Hosts = hosts("a", "b", "c")
	c.Spec.RoleGroups.Worker = []string{"a", "b"}
	s := Scope{Want: c, Targets: []string{"b", "c"}}
	if got := s.Role(manifest.RoleWorker); len(got) != 1 || got[0].Name != "b" {
		t.Errorf("workers %v", got)
	}
	if got := s.WithoutTargets().Role(manifest.RoleWorker); len(got) != 2 {
		t.Errorf("all workers %v", got)
	}
	s.Away = []string{"b"}
	if got := s.WithoutTargets().Role(manifest.RoleWorker); len(got) != 1 || got[0].Name != "a" {
		t.Errorf("workers that are there %v", got)
	}
	s.Away = nil
	if got := s.Hosts(); len(got) != 2 {
		t.Errorf("hosts %v", got)
	}
}

func TestUnpinnedImagesAreThoseOfTheLock(t *testing.T) {
	l := &manifest.Lock{
		Sets: []manifest.Set{{Name: "v1"}}, Platforms: []manifest.Platform{{OS: "linux", Arch: "amd64"}},
		Images: []manifest.ImagePin{{Names: []string{"pause"}, Sets: []string{"v1"}, Digest: "sha256:0"}},
	}
	needs := step{steps.Meta{Name: "x", Needs: []manifest.Need{{Kind: manifest.Image, Name: "pause"}}}}
	for arch, complete := range map[string]bool{"amd64": true, "arm64": false} {
		g, err := Build(pipeline(task("t", func(Scope) Fragment { return On([]manifest.Host{{Name: "n", Arch: arch}}, needs) })), Scope{})
		if err != nil {
			t.Fatal(err)
		}
		if err := g.CheckBundle(l, "v1"); (err == nil) != complete {
			t.Errorf("%s: %v", arch, err)
		}
	}
}

func TestUnused(t *testing.T) {
	amd64, arm64 := manifest.Platform{OS: "linux", Arch: "amd64"}, manifest.Platform{OS: "linux", Arch: "arm64"}
	l := &manifest.Lock{
		Sets: []manifest.Set{{Name: "v1"}, {Name: "v2"}},
		Artifacts: []manifest.Artifact{
			{ID: "kubelet-amd64", Kind: manifest.Binary, Name: "kubelet", Platform: amd64, Sets: []string{"v1"}, SHA256: "1"},
			{ID: "kubelet-arm64", Kind: manifest.Binary, Name: "kubelet", Platform: arm64, Sets: []string{"v1"}, SHA256: "2"},
			{ID: "containerd", Kind: manifest.Binary, Name: "containerd", Platform: amd64, Sets: []string{"v1"}, Archive: "tar.gz",
				Members: []manifest.Member{{Name: "ctr", SHA256: "3"}, {Name: "containerd", SHA256: "4"}}},
			{ID: "of-another-set", Kind: manifest.Binary, Name: "kubelet", Platform: amd64, Sets: []string{"v2"}, SHA256: "5"},
		},
		Images: []manifest.ImagePin{{ID: "image/pause", Names: []string{"pause"}, Sets: []string{"v1"}}, {ID: "image/extra", Sets: []string{"v1"}}},
	}
	needs := step{steps.Meta{Name: "x", Needs: []manifest.Need{
		{Kind: manifest.Binary, Name: "kubelet"}, {Kind: manifest.Binary, Name: "containerd/ctr"}, {Kind: manifest.Image, Name: "pause"},
	}}}
	g, err := Build(pipeline(task("t", func(Scope) Fragment { return On([]manifest.Host{{Name: "n", Arch: "amd64"}}, needs) })), Scope{})
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(Unused(l, "v1", g), " "); got != "containerd#containerd image/extra kubelet-arm64" {
		t.Errorf("unused: %s", got)
	}
}
