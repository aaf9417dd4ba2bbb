package addon_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/registry"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/addon"
	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
	"github.com/mensylisir/kubexm/steps/steptest"
)

var tools = manifest.Addon{Name: "tools", Source: "https://files.example/tools.yaml"}

const text = `apiVersion: v1
kind: Namespace
metadata: {name: tools}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: tools}
spec: {replicas: 2}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent, namespace: tools}
---
apiVersion: batch/v1
kind: Job
metadata: {name: setup, namespace: tools}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: tools}
`

func kase(t *testing.T) steptest.Case {
	t.Helper()
	c := steptest.Cluster(t, steptest.Small)
	return steptest.Case{Cluster: c, Before: steptest.ExistingCluster(c), Artifacts: steptest.Artifacts{Text: map[string]string{"tools": text}}}
}

func TestAddonsKeepTheirLaws(t *testing.T) {
	steptest.Ensure(t, kase(t), addon.Install(tools, nil), addon.Remove(tools))
}

// TestARemovalNeverHoldsUpADeletion: what cannot be deleted goes with the cluster,
// and so does the record of it.
func TestARemovalNeverHoldsUpADeletion(t *testing.T) {
	for name, damage := range map[string]func(*conntest.Sim){
		"the cluster is gone": func(s *conntest.Sim) { s.RemoveAll("/etc/kubernetes"); s.RemoveAll("/var/lib/etcd") },
		"objects do not go": func(s *conntest.Sim) {
			s.Handle(func(c connector.Cmd) bool { return c.Argv[0] == "kubectl" && slices.Contains(c.Argv, "delete") },
				func(connector.Cmd, []byte) (connector.Result, bool) {
					return connector.Result{Exit: 1, Stderr: []byte("error: timed out waiting for the condition\n")}, true
				})
		},
	} {
		t.Run(name, func(t *testing.T) { removedAfter(t, tools, damage) })
	}
}

// answers has kubectl say something of an object.
func answers(s *conntest.Sim, what string, res connector.Result) {
	s.Handle(func(c connector.Cmd) bool {
		return len(c.Argv) > 7 && c.Argv[0] == "kubectl" && strings.Contains(strings.Join(c.Argv, " "), "get "+what)
	}, func(connector.Cmd, []byte) (connector.Result, bool) { return res, true })
}

// TestWaitSaysWhatIsMissing for each kind of what an add-on runs.
func TestWaitSaysWhatIsMissing(t *testing.T) {
	says := func(s string) connector.Result { return connector.Result{Stdout: []byte(s)} }
	for name, c := range map[string]struct {
		damage func(*conntest.Sim)
		want   string
	}{
		"ready": {func(*conntest.Sim) {}, ""},
		"an image is missing": {func(s *conntest.Sim) {
			answers(s, "deployment/web", says(`{"metadata":{"generation":1},"spec":{"replicas":2},"status":{"observedGeneration":1,"readyReplicas":1,"updatedReplicas":2}}`))
			answers(s, "pods", says(": quay.io/fine\nImagePullBackOff: quay.io/x\nImagePullBackOff: quay.io/x\n"))
		}, "Deployment/web in namespace tools: 1 of 2 ready (ImagePullBackOff: quay.io/x)"},
		"an older generation": {func(s *conntest.Sim) {
			answers(s, "deployment/web", says(`{"metadata":{"generation":2},"spec":{"replicas":1},"status":{"observedGeneration":1,"readyReplicas":1,"updatedReplicas":1}}`))
			answers(s, "pods", connector.Result{Exit: 1})
		}, "Deployment/web in namespace tools: 1 of 1 ready"},
		"a node has none": {func(s *conntest.Sim) {
			answers(s, "daemonset/agent", says(`{"status":{"desiredNumberScheduled":3,"numberReady":2,"updatedNumberScheduled":3}}`))
			answers(s, "pods", says(""))
		}, "DaemonSet/agent in namespace tools: 2 of 3 ready"},
		"a job runs": {func(s *conntest.Sim) {
			answers(s, "job/setup", says(`{"metadata":{"generation":1},"status":{"active":1}}`))
			answers(s, "pods", says(""))
		}, "Job/setup in namespace tools: 0 of 1 ready"},
		"a job is done": {func(s *conntest.Sim) {
			answers(s, "job/setup", says(`{"status":{"conditions":[{"type":"Complete","status":"True"}]}}`))
		}, ""},
		"somebody deleted it": {func(s *conntest.Sim) { s.RemoveAll("/var/lib/etcd/member/DaemonSet.apps/tools") }, "DaemonSet/agent in namespace tools does not exist"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := kase(t)
				s := k.Sim(t)
				install, wait := addon.Install(tools, nil), addon.Wait(tools)
				if err := install.Run(t.Context(), k.NewHost(t, s, install)); err != nil {
					t.Fatal(err)
				}
				c.damage(s)
				first := s.Snapshot()
				v, err := wait.Precheck(t.Context(), k.NewHost(t, s, wait))
				if err != nil || (v == steps.Done) != (c.want == "") {
					t.Errorf("%v, %v", v, err)
				}
				err = wait.Run(t.Context(), k.NewHost(t, s, wait))
				switch {
				case c.want == "" && err != nil:
					t.Error(err)
				case c.want != "" && (err == nil || err.Error() != c.want || len(steps.Advice(err)) != 1):
					t.Errorf("%v, want %s", err, c.want)
				}
				if d := conntest.Diff(first, s.Snapshot()); d != "" {
					t.Error(d)
				}
			})
		})
	}
}

var shop = manifest.Addon{Name: "shop", Namespace: "sales", Source: "https://charts.example", Version: "1.2.3", Values: map[string]any{"colour": "red"}}

func TestChartsKeepTheirLaws(t *testing.T) {
	k, there := kase(t), shop
	there.Namespace = "kube-public" // a namespace stays: others may be in it
	k.Unseen = []string{"/ConfigMap.core/"}
	steptest.Ensure(t, k, addon.Install(there, nil), addon.Remove(there))
	steptest.Ensure(t, k, addon.InstallHelm(), addon.RemoveHelm())
}

// TestAChartIsInstalledWithTheValuesOfTheConfig, in its namespace, by the helm of
// the bundle, which leaves nothing in the home of the user.
func TestAChartIsInstalledWithTheValuesOfTheConfig(t *testing.T) {
	k := kase(t)
	k.Artifacts = steptest.Artifacts{Text: map[string]string{"shop": "the chart"}}
	s := k.Sim(t)
	install := addon.Install(shop, nil)
	if err := install.Run(t.Context(), k.NewHost(t, s, install)); err != nil {
		t.Fatal(err)
	}
	if got := s.Read("/var/lib/etcd/member/ConfigMap.core/sales/shop"); !strings.Contains(got, `the chartcolour: red\n`) {
		t.Errorf("%s", got)
	}
	for _, c := range s.Calls() {
		if slices.Contains(c.Argv, "helm") && !slices.Contains(c.Argv, "KUBECACHEDIR=/run/kubexm/kubectl") {
			t.Errorf("%q", c.Argv)
		}
	}
	other := shop
	other.Values = map[string]any{"colour": "blue"}
	if v, err := addon.Install(other, nil).Precheck(t.Context(), k.NewHost(t, s, addon.Install(other, nil))); err != nil || v != steps.Todo {
		t.Errorf("other values: %v, %v", v, err)
	}
	if m := install.Meta(); m.Name != "addon.install-shop-in-sales" || !slices.Contains(m.Needs, manifest.Need{Kind: manifest.Chart, Name: "shop"}) {
		t.Errorf("%+v", m)
	}
}

// TestAChartNeverHoldsUpADeletion: where helm or the cluster is gone, the release
// goes with its cluster.
// removedAfter installs an add-on, damages its host, and removes it all the same.
// TestImagesWithAnotherDigest: a manifest names what the site's registry has, and a
// chart is installed with other words.
func TestImagesWithAnotherDigest(t *testing.T) {
	published, own := "sha256:"+strings.Repeat("1", 64), "sha256:"+strings.Repeat("9", 64)
	m := registry.Mapper{Host: "site.example", Digests: map[string]string{registry.DigestKey("quay.io/a/b", published): own}}
	at := func(*steps.Host) (registry.Mapper, error) { return m, nil }
	k := kase(t)
	k.Artifacts = steptest.Artifacts{
		Text: map[string]string{"tools": text + "---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: image}, data: {image: 'quay.io/a/b@" + published + "'}}\n", "shop": "no archive"},
		Pins: []manifest.ImagePin{{Reference: "quay.io/a/b:1", Digest: published}},
	}
	s := k.Sim(t)
	install := addon.Install(tools, at)
	if err := install.Run(t.Context(), k.NewHost(t, s, install)); err != nil {
		t.Fatal(err)
	}
	if got := s.Read("/var/lib/etcd/member/ConfigMap.core/default/image"); !strings.Contains(got, "quay.io/a/b@"+own) {
		t.Errorf("%s", got)
	}
	chart := addon.Install(shop, at)
	if err := chart.Run(t.Context(), k.NewHost(t, s, chart)); err == nil || !strings.Contains(err.Error(), "gzip") {
		t.Errorf("the chart was not opened to put other words in: %v", err)
	}
	m.Digests = nil
	if err := chart.Run(t.Context(), k.NewHost(t, s, chart)); err != nil {
		t.Errorf("a chart of which nothing is another there: %v", err)
	}
	lost := addon.Install(tools, func(*steps.Host) (registry.Mapper, error) { return m, errors.New("unreadable") })
	if _, err := lost.Precheck(t.Context(), k.NewHost(t, s, lost)); err == nil {
		t.Error("digests that cannot be read were passed over")
	}
}

func removedAfter(t *testing.T, a manifest.Addon, damage func(*conntest.Sim)) {
	t.Helper()
	k := kase(t)
	s := k.Sim(t)
	install, remove := addon.Install(a, nil), addon.Remove(a)
	if err := install.Run(t.Context(), k.NewHost(t, s, install)); err != nil {
		t.Fatal(err)
	}
	damage(s)
	if err := remove.Run(t.Context(), k.NewHost(t, s, remove)); err != nil {
		t.Error(err)
	}
	if v, err := remove.Precheck(t.Context(), k.NewHost(t, s, remove)); err != nil || v != steps.Done {
		t.Errorf("%v, %v", v, err)
	}
}

func TestAChartNeverHoldsUpADeletion(t *testing.T) {
	for name, damage := range map[string]func(*conntest.Sim){
		"the cluster is gone": func(s *conntest.Sim) { s.RemoveAll("/etc/kubernetes"); s.RemoveAll("/var/lib/etcd") },
		"helm does not end": func(s *conntest.Sim) {
			s.Handle(func(c connector.Cmd) bool { return slices.Contains(c.Argv, "uninstall") },
				func(connector.Cmd, []byte) (connector.Result, bool) {
					return connector.Result{Exit: 1, Stderr: []byte("Error: timed out waiting for the condition\n")}, true
				})
		},
	} {
		t.Run(name, func(t *testing.T) { removedAfter(t, shop, damage) })
	}
}
