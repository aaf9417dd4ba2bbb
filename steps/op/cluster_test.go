package op_test

import (
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
	"github.com/mensylisir/kubexm/steps/op"
	"github.com/mensylisir/kubexm/steps/runner"
	"github.com/mensylisir/kubexm/steps/steptest"
)

const adminConf = "/etc/kubernetes/admin.conf"

// objects is a manifest with special cases: its own namespace, a Secret, an object that
// already exists, an empty document.
const objects = `apiVersion: v1
kind: Namespace
metadata: {name: x}
---
---
apiVersion: v1
kind: ConfigMap
metadata: {name: coredns, namespace: kube-system}
data: {Corefile: "ours\n", more: "1"}
---
apiVersion: v1
kind: Secret
metadata: {name: key, namespace: x}
stringData: {a: hidden}
---
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: plain}, data: {a: b}}
`

func applied(body string) op.Manifest {
	return op.Manifest{Name: "x", Kubeconfig: adminConf, Owner: "kubexm", Body: text(body)}
}

func chart(values string) op.Chart {
	return op.Chart{Release: "x", Namespace: "kube-public", Kubeconfig: adminConf, Archive: manifest.Need{Kind: manifest.Chart, Name: "x"}, Values: text(values)}
}

func TestResourcesOfAClusterKeepTheirLaws(t *testing.T) {
	c := steptest.Cluster(t, steptest.Small)
	for name, x := range map[string]struct {
		rs    []op.Resource
		every int
	}{
		"manifest":               {[]op.Resource{applied(objects)}, 1},
		"manifest of one object": {[]op.Resource{applied("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}")}, 1},
		"two manifests":          {[]op.Resource{applied(objects), op.Manifest{Name: "y", Kubeconfig: adminConf, Owner: "kubexm", Body: text("{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: x}}")}}, 3},
		"chart":                  {[]op.Resource{chart("a: b\n")}, 1},
		"chart without values":   {[]op.Resource{op.Chart{Release: "x", Namespace: "default", Kubeconfig: adminConf, Archive: manifest.Need{Kind: manifest.Chart, Name: "x"}}}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := steptest.Case{Cluster: c, Before: steptest.ExistingCluster(c), Every: x.every}
			if _, chart := x.rs[0].(op.Chart); chart {
				k.Unseen = []string{"/ConfigMap.core/"}
			}
			steptest.Ensure(t, k, op.Ensure("x.install", x.rs), op.Remove("x.uninstall", x.rs))
		})
	}
}

func TestUsersAndLinksKeepTheirLaws(t *testing.T) {
	etcd := op.User{Name: "etcd", UID: 2379, GID: 2379, Home: "/var/lib/etcd"}
	for name, c := range map[string]struct {
		before func(*conntest.Sim)
		r      op.Resource
	}{
		"user":                      {nil, op.User{Name: "x"}},
		"user with all":             {nil, op.User{Name: "x", UID: 501, Group: "y", GID: 502, Home: "/var/lib/x", Shell: "/bin/sh"}},
		"user with a home in use":   {func(s *conntest.Sim) { s.AddFile("/var/lib/etcd/theirs", "t", 0o600) }, etcd},
		"user in a group of others": {nil, op.User{Name: "x", Group: "adm"}},
		"link":                      {nil, op.Link{Path: "/usr/local/bin/x", Target: "y"}},
		"link over a file":          {func(s *conntest.Sim) { s.AddFile("/usr/local/bin/x", "theirs", 0o711) }, op.Link{Path: "/usr/local/bin/x", Target: "/opt/x"}},
		"link over another":         {func(s *conntest.Sim) { s.AddLink("/usr/local/bin/x", "theirs") }, op.Link{Path: "/usr/local/bin/x", Target: "/opt/x"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rs := []op.Resource{c.r}
			steptest.Ensure(t, steptest.Case{Before: c.before}, op.Ensure("x.install", rs), op.Remove("x.uninstall", rs))
		})
	}
}

// TestExistingResourcesStay: an existing user and an existing release are not changed, and
// conflicts are errors.
func TestExistingResourcesStay(t *testing.T) {
	user := func(uid string) func(*conntest.Sim) {
		return func(s *conntest.Sim) {
			r := runner.New(s, runner.Options{})
			if _, err := r.EnsureUser(t.Context(), runner.NewUser{Name: "x", UID: map[string]int{"501": 501, "7": 7}[uid], Home: "/home/x", Shell: "/bin/zsh"}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, c := range map[string]struct {
		before func(*conntest.Sim)
		r      op.Resource
		fails  string
	}{
		"the user is there":       {user("501"), op.User{Name: "x", UID: 501, Home: "/var/lib/x"}, ""},
		"with another number":     {user("7"), op.User{Name: "x", UID: 501}, "user x has ID 7, not 501"},
		"a group of other number": {nil, op.User{Name: "x", Group: "adm", GID: 77}, "group adm has ID 4, not 77"},
		"the link is there":       {func(s *conntest.Sim) { s.AddLink("/etc/x", "y") }, op.Link{Path: "/etc/x", Target: "y"}, ""},
		"a folder in its place":   {func(s *conntest.Sim) { s.AddDir("/etc/x", 0o755) }, op.Link{Path: "/etc/x", Target: "y"}, "is a folder"},
		"no object":               {nil, applied("# nothing\n---\n"), "contains no object"},
		"an object without name":  {nil, applied("{apiVersion: v1, kind: Secret, metadata: {generateName: a}}"), "document 1: an object needs"},
		"no yaml":                 {nil, applied("a: [\n"), "document 1: yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			kase := steptest.Case{Before: c.before}
			s := kase.Sim(t)
			first := s.Snapshot()
			step := op.Ensure("x.install", []op.Resource{c.r})
			v, err := step.Precheck(t.Context(), kase.NewHost(t, s, step))
			switch {
			case c.fails == "" && (err != nil || v != steps.Done):
				t.Errorf("%v, %v", v, err)
			case c.fails != "" && (err == nil || !strings.Contains(err.Error(), c.fails)):
				t.Errorf("%v, want %s", err, c.fails)
			}
			if d := conntest.Diff(first, s.Snapshot()); d != "" {
				t.Error(d)
			}
		})
	}
}

// run runs a step on a host, as in a separate run of kubexm.
func run(t *testing.T, kase steptest.Case, s *conntest.Sim, step steps.Step) {
	t.Helper()
	if err := step.Run(t.Context(), kase.NewHost(t, s, step)); err != nil {
		t.Fatal(err)
	}
}

// diff returns the dry run of a step.
func diff(t *testing.T, kase steptest.Case, s *conntest.Sim, step steps.Step) ([]string, error) {
	t.Helper()
	d, ok := step.(steps.Differ)
	if !ok {
		t.Fatalf("%T gives no difference", step)
	}
	return d.Diff(t.Context(), kase.NewHost(t, s, step))
}

// TestRemovalOfAChangedManifest: a later version has other objects. A removal deletes the
// objects of both versions without either manifest.
func TestRemovalOfAChangedManifest(t *testing.T) {
	c := steptest.Cluster(t, steptest.Small)
	kase := steptest.Case{Cluster: c, Before: steptest.ExistingCluster(c)}
	s := kase.Sim(t)
	first := s.Snapshot()
	run(t, kase, s, op.Ensure("x", []op.Resource{applied(objects)}))
	one := s.Snapshot()
	two := op.Ensure("x", []op.Resource{applied("{apiVersion: v1, kind: ConfigMap, metadata: {name: late}}\n---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: plain}, data: {a: c}}")})
	h := kase.NewHost(t, s, two)
	if err := two.Run(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	if err := two.Rollback(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	if d := conntest.Diff(one, s.Snapshot()); d != "" {
		t.Errorf("undoing the second version:\n%s", d)
	}
	run(t, kase, s, two)
	run(t, kase, s, op.Remove("x", []op.Resource{op.Manifest{Name: "x", Kubeconfig: adminConf, Owner: "kubexm"}}))
	if d := conntest.Diff(first, s.Snapshot()); d != "" {
		t.Errorf("a removal after both:\n%s", d)
	}
}

// TestAManifestDefinesItsKinds: objects of a kind that the same manifest defines are
// rejected until the API server knows the kind. The second attempt succeeds.
func TestAManifestDefinesItsKinds(t *testing.T) {
	c := steptest.Cluster(t, steptest.Small)
	kase := steptest.Case{Cluster: c, Before: steptest.ExistingCluster(c)}
	s := kase.Sim(t)
	first := s.Snapshot()
	crd := "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: foos.x.io}, spec: {group: x.io, names: {kind: Foo}}}\n"
	foo := "---\n{apiVersion: x.io/v1, kind: Foo, metadata: {name: foo, namespace: default}}\n"
	both := op.Ensure("x", []op.Resource{applied(crd + foo)})
	if err := both.Run(t.Context(), kase.NewHost(t, s, both)); err == nil || !strings.Contains(err.Error(), "no matches for kind") {
		t.Fatalf("%v", err)
	}
	if d, err := diff(t, kase, s, both); err != nil || len(d) != 1 {
		t.Errorf("%q, %v", d, err)
	}
	run(t, kase, s, op.Ensure("crd", []op.Resource{op.Manifest{Name: "crd", Kubeconfig: adminConf, Owner: "kubexm", Body: text(crd)}}))
	run(t, kase, s, both)
	if v, err := both.Precheck(t.Context(), kase.NewHost(t, s, both)); err != nil || v != steps.Done {
		t.Errorf("%v, %v", v, err)
	}
	run(t, kase, s, op.Remove("x", []op.Resource{applied("")}))
	run(t, kase, s, op.Remove("crd", []op.Resource{op.Manifest{Name: "crd", Kubeconfig: adminConf}}))
	if d := conntest.Diff(first, s.Snapshot()); d != "" {
		t.Error(d)
	}
}

// TestAManifestShowsItsDifference tests the output of a dry run.
func TestAManifestShowsItsDifference(t *testing.T) {
	c := steptest.Cluster(t, steptest.Small)
	kase := steptest.Case{Cluster: c, Before: steptest.ExistingCluster(c)}
	s := kase.Sim(t)
	run(t, kase, s, op.Ensure("x", []op.Resource{applied(objects)}))
	step := op.Ensure("x", []op.Resource{applied(strings.Replace(objects, "ours", "OURS", 1))})
	d, err := diff(t, kase, s, step)
	if err != nil || len(d) != 1 || !strings.HasPrefix(d[0], "apply manifest x (4 objects)\n  - ") || !strings.Contains(d[0], "\n  + ") || !strings.Contains(d[0], "OURS") {
		t.Errorf("%q, %v", d, err)
	}
	s.HandleProgram("kubectl", func(connector.Cmd, []byte) (connector.Result, bool) {
		return connector.Result{Exit: 2, Stderr: []byte(`error: exec: "diff": executable file not found in $PATH`)}, true
	})
	if _, err := step.Precheck(t.Context(), kase.NewHost(t, s, step)); err == nil || !strings.Contains(strings.Join(steps.Advice(err), " "), "diffutils") {
		t.Errorf("without the program diff: %v", err)
	}
}

// TestAChartFollowsItsArchiveAndValues: another archive, other values and a change by a
// user each cause an upgrade. A removal restores the original release.
func TestAChartFollowsItsArchiveAndValues(t *testing.T) {
	c := steptest.Cluster(t, steptest.Small)
	kase := steptest.Case{Cluster: c, Before: func(s *conntest.Sim) {
		steptest.ExistingCluster(c)(s)
		s.AddFile("/root/theirs.tgz", "their chart", 0o600)
	}}
	s := kase.Sim(t)
	r := runner.New(s, runner.Options{})
	helm := func(args ...string) string {
		t.Helper()
		out, err := r.Exec(t.Context(), append([]string{"helm", "--kubeconfig", adminConf, "--namespace", "kube-public"}, args...)...)
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	content := func() string {
		return s.Read("/var/lib/etcd/member/ConfigMap.core/kube-public/x")
	}
	helm("upgrade", "x", "/root/theirs.tgz", "--install", "--description", "by hand")
	step := func(values string) steps.Step { return op.Ensure("x", []op.Resource{chart(values)}) }
	look := func(values string, want steps.Verdict) {
		t.Helper()
		if v, err := step(values).Precheck(t.Context(), kase.NewHost(t, s, step(values))); err != nil || v != want {
			t.Errorf("%v, %v", v, err)
		}
	}
	look("a: 1", steps.Todo)
	run(t, kase, s, step("a: 1"))
	look("a: 1", steps.Done)
	look("a: 2", steps.Todo)
	kase.Artifacts = steptest.Artifacts{Text: map[string]string{"x": "a newer chart"}}
	look("a: 1", steps.Todo)
	run(t, kase, s, step("a: 1"))
	if got := content(); !strings.Contains(got, "a newer charta: 1") {
		t.Errorf("%s", got)
	}
	helm("rollback", "x", "2")
	look("a: 1", steps.Todo)
	run(t, kase, s, step("a: 1"))
	run(t, kase, s, op.Remove("x", []op.Resource{chart("")}))
	if got := content(); !strings.Contains(got, "their chart") {
		t.Errorf("after the removal: %s", got)
	}
	if files := s.Below("/run/kubexm/charts"); len(files) > 0 {
		t.Errorf("%v are left", files)
	}
}

// TestInterruptedChart: helm refuses to upgrade a release that a killed helm left pending.
func TestInterruptedChart(t *testing.T) {
	c := steptest.Cluster(t, steptest.Small)
	for name, revision := range map[string]int{"install": 1, "upgrade": 2} {
		t.Run(name, func(t *testing.T) {
			kase := steptest.Case{Cluster: c, Before: steptest.ExistingCluster(c)}
			s := kase.Sim(t)
			for range revision {
				run(t, kase, s, op.Ensure("x", []op.Resource{chart("a: " + name + strings.Repeat("x", len(s.Calls())))}))
			}
			file := "/var/lib/etcd/member/Release.helm.sh/kube-public/x"
			s.AddFile(file, strings.Replace(s.Read(file), `"deployed"`, `"pending-`+name+`"`, 1), 0o600)
			step := op.Ensure("x", []op.Resource{chart("a: b")})
			run(t, kase, s, step)
			if v, err := step.Precheck(t.Context(), kase.NewHost(t, s, step)); err != nil || v != steps.Done {
				t.Errorf("%v, %v", v, err)
			}
		})
	}
}

func TestNeedsOfAChart(t *testing.T) {
	step := op.Ensure("x", []op.Resource{chart("")})
	if n := step.Meta().Needs; len(n) != 1 || n[0].Kind != manifest.Chart {
		t.Errorf("%v", n)
	}
}
