package installer_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/mensylisir/kubexm/installer/engine"
	"github.com/mensylisir/kubexm/installer/pipeline"
	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/cluster"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
)

// clusters are the configs that whole runs are tried on.
var clusters = []string{"single", "site", "dual-stack", "dns", "addons", "masters", "masters-stacked", "etcd-hosts", "packages", "registry-existing", "no-registry", "calico", "cilium"}

// each tries something on the site of each config, in a time of its own: waits
// take none. A short run takes every third config.
func each(t *testing.T, names []string, try func(*site)) {
	for _, name := range thirdInShort(names) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { try(newSite(t, name)) })
		})
	}
}

// thirdInShort gives all, and every third of them to a short run.
func thirdInShort[T any](all []T) []T {
	if !testing.Short() {
		return all
	}
	return pick(all, 0)
}

// rows gives the names of a table's rows, every third in a short run.
func rows[T any](table map[string]T) []string { return thirdInShort(slices.Sorted(maps.Keys(table))) }

// ran lists what changed something in the last run.
func (s *site) ran() []string {
	var out []string
	for _, e := range s.Events {
		if e.Outcome == engine.Ran || e.Outcome == engine.RolledBack {
			out = append(out, e.Step+" on "+e.Host)
		}
	}
	return out
}

// TestACreationIsUndoneByADeletion: create, create again, delete, and all of it
// once more. A second creation finds nothing to do, a deletion leaves every host
// as it was.
func TestACreationIsUndoneByADeletion(t *testing.T) {
	t.Parallel()
	each(t, clusters, func(s *site) {
		first := s.State(true)
		for range 2 {
			s.Must(pipeline.Create, "create")
			if len(s.ran()) < 15 {
				s.t.Errorf("only %q ran", s.ran())
			}
			made := s.State(true)
			s.Must(pipeline.Create, "create again")
			if ran := s.ran(); len(ran) > 0 {
				s.t.Errorf("a second creation ran %q", ran)
			}
			s.Same("a second creation changes nothing", made, s.State(true))
			for _, h := range s.Cluster.Spec.Hosts {
				isNode := s.Cluster.Spec.RoleGroups.Has("master", h.Name) || s.Cluster.Spec.RoleGroups.Has("worker", h.Name)
				if known := s.Kube.Object("v1", "Node", "", h.Name) != nil; known != isNode {
					s.t.Errorf("%s is a node: %t, want %t", h.Name, known, isNode)
				}
			}
			if s.Kube.Object("v1", "ConfigMap", "kube-system", "kubexm") == nil {
				s.t.Error("the cluster does not remember how it was made")
			}
			s.elsewhere()
			s.Must(pipeline.Delete, "delete")
			s.Same("a deletion gives back what was there", first, s.State(true))
			s.madeNoKeys()
			for _, file := range []string{cluster.KubeconfigPath(s.Workdir), filepath.Join(s.Workdir, "applied", "config.yaml")} {
				if _, err := os.Stat(file); err == nil {
					s.t.Errorf("%s is left", file)
				}
			}
		}
	})
}

// TestAResetIsEnough: hosts whose control plane is gone are cleaned as well.
func TestAResetIsEnough(t *testing.T) {
	t.Parallel()
	each(t, []string{"site"}, func(s *site) {
		first := s.State(true)
		s.Must(pipeline.Create, "create")
		s.Sims["m1"].KillUnit("containerd.service")
		s.Must(pipeline.Reset, "reset")
		s.Same("a reset gives back what was there", first, s.State(true))
		s.Must(pipeline.Create, "create after a reset")
	})
}

// failing is a step that ends badly: before it did anything, or after all of it.
type failing struct {
	steps.Step
	after bool
}

var errInjected = errors.New("no luck")

// Precheck fails where a step that finds all well would not run at all.
func (f failing) Precheck(ctx context.Context, h *steps.Host) (steps.Verdict, error) {
	if f.Meta().ReadOnly {
		return steps.Todo, errInjected
	}
	return f.Step.Precheck(ctx, h)
}

func (f failing) Run(ctx context.Context, h *steps.Host) error {
	if f.after {
		if err := f.Step.Run(ctx, h); err != nil {
			return err
		}
	}
	return errInjected
}

// steadily runs a pipeline again and again, and fails it at each of its sampled steps
// in turn: each run has to name its step, and to go on from what the one before left.
func (s *site) steadily(p pipe, after bool) {
	for _, n := range sampled(s.t, s.Graph(p, nil).Nodes) {
		err := s.Run(p, func(x *plan.Node) {
			if x.ID == n.ID {
				x.Step = failing{x.Step, after}
			}
		})
		var at *steps.Error
		switch {
		case errors.As(err, &at) && at.Node == n.ID && errors.Is(err, errInjected):
		case err == nil && !s.saw(n.ID, engine.Ran): // there was nothing left for it to do
		case err == nil && after && s.saw(n.ID, engine.Retried): // it was tried again, and found itself done
		default:
			s.t.Errorf("a failure at %s: %v", n.ID, err)
		}
	}
}

// saw reports whether a step had an outcome in the last run.
func (s *site) saw(id string, o engine.Outcome) bool {
	return slices.ContainsFunc(s.Events, func(e engine.Event) bool { return e.Node == id && e.Outcome == o })
}

// TestAFailureAtEachStep: the run says which, and the next one goes on.
func TestAFailureAtEachStep(t *testing.T) {
	t.Parallel()
	for after, names := range map[bool][]string{false: {"single", "site", "masters-stacked", "registry-existing"}, true: {"addons", "dual-stack", "etcd-hosts", "no-registry"}} {
		t.Run(fmt.Sprintf("after=%t", after), func(t *testing.T) {
			each(t, names, func(s *site) {
				first := s.State(true)
				s.Must(pipeline.Create, "create")
				made := s.State(false)
				s.Must(pipeline.Delete, "delete")

				s.steadily(pipeline.Create, after)
				s.Must(pipeline.Create, "create after all failures")
				s.Same("a creation that failed everywhere ends where a whole one does", made, s.State(false))
				s.steadily(pipeline.Delete, after)
				s.Must(pipeline.Delete, "delete after all failures")
				s.Same("a deletion that failed everywhere gives back what was there", first, s.State(true))
			})
		})
	}
}

// TestAMasterIsLost: the same with masters that join, and with a store of its own.
func TestAMasterIsLost(t *testing.T) {
	t.Parallel()
	each(t, []string{"masters"}, func(s *site) { s.losing("m1", "m2") })
	each(t, []string{"masters-stacked"}, func(s *site) { s.losing("m2") })
	each(t, []string{"etcd-hosts"}, func(s *site) { s.losing("e2") })
}

// TestAHostThatIsLost breaks the wire to one host, later in each run, until a run
// ends before it comes to that.
func TestAHostThatIsLost(t *testing.T) {
	t.Parallel()
	each(t, []string{"site"}, func(s *site) { s.losing("m1", "w1") })
}

// recordedThrough has the cluster record name a master as the one through which it was
// written: a run that loses the first one in its last steps may end through another.
func (s *site) recordedThrough(master string) {
	const record = "/var/lib/etcd/member/ConfigMap.core/kube-system/kubexm"
	for _, host := range s.Sims {
		if text := host.Read(record); text != "" {
			host.AddFile(record, regexp.MustCompile(`"lead":"[^"]*"`).ReplaceAllString(text, `"lead":"`+master+`"`), 0o600)
		}
	}
}

// losing breaks the wire to each of hosts in turn, at every 41st command; in a
// short run at every 123rd.
func (s *site) losing(hosts ...string) {
	every := 41
	if testing.Short() {
		every *= 3
	}
	first := s.State(true)
	s.Must(pipeline.Create, "create")
	made := s.State(false)
	s.Must(pipeline.Delete, "delete")
	for _, p := range []pipe{pipeline.Create, pipeline.Delete} {
		for _, host := range hosts {
			breaks := 0
			for at := 3; ; at += every {
				s.Sims[host].Break(conntest.Fault{At: at, Stay: true, After: at%2 == 0})
				err := s.Run(p, nil)
				s.Sims[host].Mend()
				if err == nil {
					break
				}
				breaks++
			}
			if breaks == 0 {
				s.t.Errorf("%s was never lost", host)
			}
		}
		if p().WritesRecord {
			s.recordedThrough("m1")
			s.Same("a creation that lost hosts ends where a whole one does", made, s.State(false))
		}
	}
	s.Same("a deletion that lost hosts gives back what was there", first, s.State(true))
}
