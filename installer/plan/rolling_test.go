package plan

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
)

// planned gives the graph of one task.
func planned(t *testing.T, f func(Scope) Fragment) *Graph {
	t.Helper()
	g, err := Build(pipeline(task("t", f)), Scope{})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// order is a plan as "step[part] hosts < what it waits for".
func order(g *Graph) string {
	var out []string
	for _, n := range g.Nodes {
		line := strings.TrimPrefix(n.ID, "m/t/") + " " + strings.Join(n.hostNames(), ",")
		for _, d := range n.Deps {
			line += map[bool]string{true: " lane ", false: " < "}[d.Lane] + strings.TrimPrefix(d.On.ID, "m/t/")
		}
		out = append(out, line)
	}
	return strings.Join(out, "\n")
}

func on(names ...string) func(manifest.Host) Fragment {
	return func(h manifest.Host) Fragment {
		var ss []steps.Step
		for _, n := range names {
			ss = append(ss, named(n))
		}
		return On([]manifest.Host{h}, ss...)
	}
}

func TestEach(t *testing.T) {
	g := planned(t, func(Scope) Fragment {
		return Seq(On(hosts("a"), named("before")), Each(hosts("a", "b"), on("one", "two")), On(hosts("a"), named("after")))
	})
	want := `before a
one[a] a < before
two[a] a lane one[a]
one[b] b < before
two[b] b lane one[b]
after a < two[a] < two[b]`
	if got := order(g); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if f := Each(nil, on("one")); !f.Empty() {
		t.Error("no host, and not empty")
	}
}

// TestPartsNest: what is within a part keeps its own name there.
func TestPartsNest(t *testing.T) {
	g := planned(t, func(Scope) Fragment {
		return Roll(hosts("a", "b"), func(h manifest.Host) Fragment {
			return Seq(On([]manifest.Host{h}, named("out")), InSet("v2", Each(hosts("x"), on("in"))))
		})
	})
	want := `out[a] a
in[a/v2/x] x < out[a]
out[b] b < in[a/v2/x]
in[b/v2/x] x < out[b]`
	if got := order(g); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestBatchSizes(t *testing.T) {
	for _, c := range []struct {
		by    Batch
		hosts int
		want  string
	}{
		{Batch{}, 3, "1 1 1"},
		{Batch{Size: 2}, 5, "2 2 1"},
		{Batch{Size: 9}, 5, "5"},
		{Batch{First: 1, Size: 2}, 5, "1 2 2"},
		{Batch{First: 3}, 5, "3 1 1"},
		{Batch{First: 7, Size: 2}, 5, "5"},
		{Batch{Percent: 40}, 5, "2 2 1"},
		{Batch{Percent: 10}, 5, "1 1 1 1 1"},
		{Batch{Percent: 100}, 5, "5"},
		{Batch{Percent: 200}, 5, "5"},
		{Batch{First: 1, Percent: 50}, 7, "1 3 3"},
		{Batch{Size: 1, Percent: 100}, 2, "1 1"},
		{Batch{Size: 2}, 0, ""},
	} {
		var hs []manifest.Host
		for i := range c.hosts {
			hs = append(hs, manifest.Host{Name: fmt.Sprint("w", i)})
		}
		var sizes, seen []string
		for _, batch := range c.by.cut(hs) {
			sizes = append(sizes, fmt.Sprint(len(batch)))
			for _, h := range batch {
				seen = append(seen, h.Name)
			}
		}
		if got := strings.Join(sizes, " "); got != c.want {
			t.Errorf("%+v of %d: %s, want %s", c.by, c.hosts, got, c.want)
		}
		for i, name := range seen {
			if name != hs[i].Name {
				t.Errorf("%+v of %d: %v", c.by, c.hosts, seen)
			}
		}
	}
}

// TestBatches: batches follow each other, with what is between in between, and what is
// neither before the first nor after the last.
func TestBatches(t *testing.T) {
	change := func(hs []manifest.Host) Fragment { return On(hs, named("change")) }
	gate := func(n int) Fragment { return On(hosts("m"), named(fmt.Sprint("gate-", n))) }
	for want, between := range map[string]func(int) Fragment{
		`change[1] a
gate-1[1] m < change[1]
change[2] b,c < gate-1[1]
gate-2[2] m < change[2]
change[3] d < gate-2[2]`: gate,
		`change[1] a
change[2] b,c < change[1]
change[3] d < change[2]`: nil,
	} {
		g := planned(t, func(Scope) Fragment {
			return Batches(hosts("a", "b", "c", "d"), Batch{First: 1, Size: 2}, change, between)
		})
		if got := order(g); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	}
	if f := Batches(nil, Batch{}, change, gate); !f.Empty() {
		t.Error("no host, and not empty")
	}
}

// TestInSet: the steps of a fragment take their artifacts from one set, an inner one
// counts, and the bundle is held against it.
func TestInSet(t *testing.T) {
	amd64 := manifest.Platform{OS: "linux", Arch: "amd64"}
	kubelet := step{steps.Meta{Name: "kubelet", Needs: []manifest.Need{{Kind: manifest.Binary, Name: "kubelet"}}}}
	g := planned(t, func(Scope) Fragment {
		return Seq(On(hosts("a"), kubelet), InSet("v2", Seq(On(hosts("a"), kubelet), InSet("v3", On(hosts("a"), kubelet)))))
	})
	want := []string{"", "v2", "v3"}
	for i, n := range g.Nodes {
		if n.Set != want[i] {
			t.Errorf("%s is in set %q, want %q", n.ID, n.Set, want[i])
		}
	}
	l := &manifest.Lock{
		Sets:      []manifest.Set{{Name: "v1"}, {Name: "v2"}, {Name: "v3"}},
		Artifacts: []manifest.Artifact{{ID: "old", Kind: manifest.Binary, Name: "kubelet", Platform: amd64, Sets: []string{"v1", "v2"}}},
	}
	if err := g.CheckBundle(l, "v1"); err == nil || !strings.Contains(err.Error(), "lacks 1 artifacts") {
		t.Errorf("the bundle has no v3, and: %v", err)
	}
	l.Artifacts = append(l.Artifacts, manifest.Artifact{ID: "new", Kind: manifest.Binary, Name: "kubelet", Platform: amd64, Sets: []string{"v3"}})
	if err := g.CheckBundle(l, "v1"); err != nil {
		t.Error(err)
	}
}

func TestGuardedPlan(t *testing.T) {
	back := func(h manifest.Host) Fragment {
		return Seq(on("relink", "start")(h), On(hosts("m"), named("uncordon")))
	}
	g := planned(t, func(Scope) Fragment {
		return Roll(hosts("a", "b"), func(h manifest.Host) Fragment {
			return Guarded(Seq(On(hosts("m"), named("drain")), on("switch")(h)), back)
		})
	})
	if got, want := order(g), "drain[a] m\nswitch[a] a < drain[a]\ndrain[b] m < switch[a]\nswitch[b] b < drain[b]"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	var ids []string
	for _, n := range g.Nodes[3].Guards[0].UndoNodes("b") {
		ids = append(ids, n.ID+" "+strings.Join(n.hostNames(), ","))
	}
	if got, want := strings.Join(ids, "; "), "m/t/relink[b/back/b] b; m/t/start[b/back/b] b; m/t/uncordon[b/back/b] m"; got != want {
		t.Errorf("the way back is %s, want %s", got, want)
	}
	if !strings.Contains(g.String(), "m/t/relink[b/back/b]  on b") {
		t.Errorf("the plan does not tell of the way back:\n%s", g)
	}
}

func TestGuardedRefuses(t *testing.T) {
	key := steps.NewKey[string]("token")
	reads := step{steps.Meta{Name: "reads", Reads: []steps.AnyKey{key}}}
	inner := func(h manifest.Host) Fragment { return Guarded(on("x")(h), on("y")) }
	kubelet := step{steps.Meta{Name: "kubelet", Needs: []manifest.Need{{Kind: manifest.Binary, Name: "kubelet"}}}}
	for want, back := range map[string]func(manifest.Host) Fragment{
		"m/t/reads[back/a] is an undo step, and reads or writes outputs": func(h manifest.Host) Fragment { return On([]manifest.Host{h}, reads) },
		"m/t/x[back/a] is an undo step, and has undo steps itself":       inner,
		"two steps are called m/t/x[back/a]":                             on("x", "x"),
	} {
		_, err := Build(pipeline(task("t", func(Scope) Fragment { return Guarded(on("switch")(hosts("a")[0]), back) })), Scope{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	g := planned(t, func(Scope) Fragment {
		return Guarded(on("switch")(hosts("a")[0]), func(h manifest.Host) Fragment { return On([]manifest.Host{h}, kubelet) })
	})
	if err := g.CheckBundle(&manifest.Lock{Sets: []manifest.Set{{Name: "v1"}}}, "v1"); err == nil || !strings.Contains(err.Error(), "kubelet") {
		t.Errorf("a way back lacks its artifact: %v", err)
	}
}
