package plan

import (
	"testing"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
)

// TestOverlap: what overlaps waits host by host where it says so, for the last step of each host,
// and what comes before and after waits for all of it.
func TestOverlap(t *testing.T) {
	lead := []manifest.Host{{Name: leadName}}
	p := pipeline(task("t", func(Scope) Fragment {
		ready := Seq(On(hosts("m", "w", "r"), named("one")), Par(On(hosts("m", "w", "r"), named("two")), On(hosts("w"), named("three"))))
		registry := On(hosts("r"), named("registry")).AfterOnHosts(ready)
		images := On(hosts("m", "w"), named("images"), named("pin")).After(registry).AfterOnHosts(ready)
		first := Seq(On(hosts("m"), named("init")), On(lead, named("fetch"))).AfterOnHosts(images)
		nothing := On(nil, named("nothing")).After(images).AfterOnHosts(images)
		join := Seq(On(lead, named("token")), On(hosts("w"), named("join"))).After(nothing, first).AfterOnHosts(images, nothing)
		return Seq(On(hosts("r"), named("before")), Overlap(ready, registry, images, first, nothing, join), On(hosts("r"), named("last")))
	}))
	g, err := Build(p, Scope{})
	if err != nil {
		t.Fatal(err)
	}
	want := `test: 12 steps
m/t/before  on r
m/t/one  on m, w, r
    after m/t/before
m/t/two  on m, w, r
    after m/t/one
m/t/three  on w
    after m/t/one
m/t/registry  on r
    lane  m/t/two
m/t/images  on m, w
    after m/t/registry
    lane  m/t/two
    lane  m/t/three
m/t/pin  on m, w
    lane  m/t/images
m/t/init  on m
    lane  m/t/pin
m/t/fetch  on lead
    after m/t/init
m/t/token  on lead
    after m/t/fetch
m/t/join  on w
    after m/t/token
    lane  m/t/pin
m/t/last  on r
    after m/t/join
`
	if got := g.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestLanesWriteForTheirHosts: what waits host by host may read an output only if it waits for
// the writer on each of its hosts.
func TestLanesWriteForTheirHosts(t *testing.T) {
	key := steps.NewKey[string]("token")
	reads := step{steps.Meta{Name: "reads", Reads: []steps.AnyKey{key}}}
	writes := step{steps.Meta{Name: "writes", Writes: []steps.AnyKey{key}}}
	for reader, ok := range map[string]bool{"a": true, "c": false} {
		_, err := Build(pipeline(task("t", func(Scope) Fragment {
			w := On(hosts("a", "b"), writes)
			return Overlap(w, On(hosts("b", reader), reads).AfterOnHosts(w))
		})), Scope{})
		if (err == nil) != ok {
			t.Errorf("on b and %s: %v", reader, err)
		}
	}
}
