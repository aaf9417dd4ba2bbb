package plan

import (
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
)

// cluster gives a cluster of hosts with their roles: "m1 master", "w1 worker".
func cluster(roles ...string) *manifest.Cluster {
	c := &manifest.Cluster{}
	for _, r := range roles {
		name, role, _ := strings.Cut(r, " ")
		c.Spec.Hosts = append(c.Spec.Hosts, hosts(name)...)
		switch role {
		case "master":
			c.Spec.RoleGroups.Master = append(c.Spec.RoleGroups.Master, name)
		case "worker":
			c.Spec.RoleGroups.Worker = append(c.Spec.RoleGroups.Worker, name)
		}
	}
	return c
}

func names(hs []manifest.Host) string {
	var out []string
	for _, h := range hs {
		out = append(out, h.Name)
	}
	return strings.Join(out, " ")
}

func TestLead(t *testing.T) {
	c := cluster("m1 master", "m2 master", "w1 worker")
	for name, x := range map[string]struct {
		s                              Scope
		lead, leads, initial, furthers string
	}{
		"all":                      {Scope{Want: c}, "lead", "m1 m2", "m1", "m2"},
		"the first is away":        {Scope{Want: c, Away: []string{"m1"}}, "lead", "m2", "", "m2"},
		"a worker is the target":   {Scope{Want: c, Targets: []string{"w1"}}, "lead", "m1 m2", "", ""},
		"no master":                {Scope{Want: cluster("w1 worker")}, "", "", "", ""},
		"nobody to go through":     {Scope{Want: c, Away: []string{"m1", "m2"}}, "", "", "", ""},
		"a further one the target": {Scope{Want: c, Targets: []string{"m2"}}, "lead", "m1 m2", "", "m2"},
	} {
		got := [4]string{names(x.s.Lead()), names(x.s.Leads()), names(x.s.InitialMaster()), names(x.s.AdditionalMasters())}
		if want := [4]string{x.lead, x.leads, x.initial, x.furthers}; got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// TestTheLeadIsAnyMaster: the plan's text has one word for it, and the bundle has to hold
// what it needs for each master.
func TestTheLeadIsAnyMaster(t *testing.T) {
	c := cluster("m1 master", "m2 master", "w1 worker")
	c.Spec.Hosts[1].Arch = "arm64"
	needs := step{steps.Meta{Name: "x", Needs: []manifest.Need{{Kind: manifest.Binary, Name: "helm"}}}}
	back := func(h manifest.Host) Fragment { return On([]manifest.Host{h}, named("back")) }
	g, err := Build(pipeline(task("t", func(s Scope) Fragment {
		return Guarded(Seq(On(s.Lead(), needs), On(s.Role(manifest.RoleWorker), named("y"))), back)
	})), Scope{Want: c})
	if err != nil {
		t.Fatal(err)
	}
	want := "test: 2 steps\nm/t/x  on lead\n    needs binary helm\nm/t/y  on w1\n    after m/t/x\nm/t/back[back/w1]  on w1\n"
	if g.String() != want {
		t.Errorf("%s", g)
	}
	if got := names(g.Hosts()); got != "m1 m2 w1" {
		t.Errorf("hosts %s", got)
	}
	l := &manifest.Lock{Sets: []manifest.Set{{Name: "v1"}}, Artifacts: []manifest.Artifact{
		{Kind: manifest.Binary, Name: "helm", Platform: manifest.Platform{OS: "linux", Arch: "amd64"}, Sets: []string{"v1"}}}}
	if err := g.CheckBundle(l, "v1"); err == nil || !strings.Contains(err.Error(), "linux/arm64: step x on m2") {
		t.Errorf("%v", err)
	}
}

func TestWhatExists(t *testing.T) {
	was, now := cluster("m1 master", "w1 worker", "w2 worker"), cluster("m1 master", "w2 worker", "w3 worker", "r1 registry")
	exists := &manifest.Existing{Config: was, Hosts: []manifest.ExistingHost{{Name: "m1", Joined: true}, {Name: "w1", Joined: true}, {Name: "w2"}}}
	s := Scope{Want: now, Exists: exists}
	if got := names(s.Joining()); got != "w2 w3" { // w2 was away when it was to join
		t.Errorf("joining %s", got)
	}
	if len(s.Leaving()) > 0 || len(s.Departing().Hosts()) > 0 {
		t.Error("hosts leave that nobody takes out of the cluster")
	}
	s.Before = was
	if got := names(s.Leaving()); got != "w1" || names(s.Departing().Hosts()) != "w1" {
		t.Errorf("leaving %s", got)
	}
	s.Before = nil
	if !s.Changed(manifest.EffectNodes) || s.Changed(manifest.EffectUpgrade, "kubelet") {
		t.Error("hosts have changed, and nothing else")
	}
	none := Scope{Want: now}
	if got := names(none.Joining()); got != "m1 w2 w3" || len(none.Leaving()) > 0 || none.Changed(manifest.EffectNodes) {
		t.Errorf("where nothing exists: joining %s", got)
	}
}
