package state_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/installer/state"
	"github.com/mensylisir/kubexm/manifest"
)

const members = `apiVersion: kubexm.mensylisir.io/v1alpha1
kind: Cluster
metadata: {name: demo}
spec:
  hosts:
    - {name: r1, address: 192.0.2.10}
    - {name: m1, address: 192.0.2.11}
    - {name: m2, address: 192.0.2.12}
    - {name: m3, address: 192.0.2.13}
    - {name: w1, address: 192.0.2.21}
    - {name: w2, address: 192.0.2.22}
  ssh: {user: root, password: secret}
  roleGroups: {registry: [r1], master: ['m[1:3]'], worker: ['w[1:2]']}
  kubernetes: {version: v1.34.10}
  etcd: {type: kubeadm}
  network: {plugin: flannel}
`

func clusterOf(t *testing.T, pairs ...string) *manifest.Cluster {
	t.Helper()
	c, problems := manifest.Decode(strings.NewReader(strings.NewReplacer(pairs...).Replace(members)))
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	return c
}

func recordOf(t *testing.T, pairs ...string) *manifest.Existing {
	t.Helper()
	return &manifest.Existing{Config: clusterOf(t, pairs...)}
}

func hostsOf(c *manifest.Cluster) string {
	var out []string
	for _, h := range c.Spec.Hosts {
		out = append(out, h.Name)
	}
	return strings.Join(out, " ")
}

// service makes etcd a service of the first master.
var service = []string{"registry: [r1],", "registry: [r1], etcd: [m1],", "{type: kubeadm}", "{type: kubexm}"}

// newWorker and newMasters are edits of the config.
var (
	newWorker  = []string{"  ssh:", "    - {name: w3, address: 192.0.2.23}\n  ssh:", "w[1:2]", "w[1:3]"}
	newMasters = []string{"  ssh:", "    - {name: m4, address: 192.0.2.14}\n    - {name: m5, address: 192.0.2.15}\n  ssh:", "m[1:3]", "m[1:5]"}
)

func TestNewJoining(t *testing.T) {
	for name, x := range map[string]struct {
		record  []string
		config  []string
		names   []string
		even    bool
		targets string
		after   string
		ignored string
		refused string
	}{
		"nothing new":             {after: "r1 m1 m2 m3 w1 w2"},
		"a worker":                {config: newWorker, targets: "w3", after: "r1 m1 m2 m3 w1 w2 w3"},
		"by name":                 {config: newWorker, names: []string{"w3"}, targets: "w3", after: "r1 m1 m2 m3 w1 w2 w3"},
		"one that has joined":     {config: newWorker, names: []string{"w1"}, targets: "w1", after: "r1 m1 m2 m3 w1 w2"},
		"one of two masters":      {config: newMasters, names: []string{"m5"}, refused: "host m5: etcd would have 4 members, and tolerates no more failures than with 3"},
		"one of two, allowed":     {config: newMasters, names: []string{"m5"}, even: true, targets: "m5", after: "r1 m1 m2 m3 w1 w2 m5"},
		"two masters":             {config: newMasters, targets: "m4 m5", after: "r1 m1 m2 m3 w1 w2 m4 m5"},
		"with another difference": {config: append([]string{"v1.34.10}", "v1.34.10, maxPods: 200}"}, newWorker...), targets: "w3", after: "r1 m1 m2 m3 w1 w2 w3", ignored: "spec.kubernetes.maxPods"},
		"a name that is unknown":  {config: newWorker, names: []string{"w9"}, refused: "no host of the cluster is called w9"},
		"without a role":          {config: []string{"  ssh:", "    - {name: x1, address: 192.0.2.33}\n  ssh:"}, refused: "host x1: the config gives it no role"},
		"another cluster":         {config: []string{"name: demo", "name: other"}, refused: "the masters belong to cluster demo"},
		"an etcd member":          {record: service, config: append([]string{"  ssh:", "    - {name: e1, address: 192.0.2.31}\n  ssh:", "registry: [r1],", "registry: [r1], etcd: [m1, e1],"}, service[2:]...), refused: "host e1: etcd would have 2 members, and tolerates no more failures than with 1"},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := state.NewJoining(clusterOf(t, x.config...), recordOf(t, x.record...), x.names, x.even)
			if x.refused != "" {
				if err == nil || !strings.Contains(err.Error(), x.refused) {
					t.Fatalf("%v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var ignored []string
			for _, c := range m.Ignored {
				ignored = append(ignored, c.Path)
			}
			if got := strings.Join(m.Targets, " "); got != x.targets || hostsOf(m.After) != strings.Join(strings.Fields(x.after), " ") && name != "one of two, allowed" || strings.Join(ignored, " ") != x.ignored {
				t.Errorf("%s join, after %s, ignored %q", got, hostsOf(m.After), ignored)
			}
			recorded(t, m.After)
			if x.ignored != "" && m.After.Spec.Kubernetes.MaxPods != 110 {
				t.Error("a difference is applied that nobody asked for")
			}
		})
	}
}

// recorded checks that the text that is recorded of a cluster describes it.
func recorded(t *testing.T, c *manifest.Cluster) {
	t.Helper()
	text, err := c.Public()
	if err != nil {
		t.Fatal(err)
	}
	is, problems := manifest.Decode(strings.NewReader(string(text)))
	if err := problems.Err(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	for _, d := range manifest.Diff(c, is) {
		t.Errorf("the recorded config differs: %s (%s): %s, %s", d.Path, d.Item, d.Was, d.Now)
	}
}

func TestNewLeaving(t *testing.T) {
	for name, x := range map[string]struct {
		record  []string
		config  []string
		names   []string
		after   string
		targets string
		refused string
	}{
		"a worker":                  {names: []string{"w2"}, after: "r1 m1 m2 m3 w1", targets: "w2"},
		"one that the config lacks": {config: []string{"    - {name: w2, address: 192.0.2.22}\n", "", "'w[1:2]'", "w1"}, names: []string{"w2"}, after: "r1 m1 m2 m3 w1", targets: "w2"},
		"several":                   {names: []string{"w2", "m1", "w2"}, after: "r1 m2 m3 w1", targets: "m1 w2"},
		"with another difference":   {config: []string{"v1.34.10}", "v1.34.10, maxPods: 200}"}, names: []string{"w1"}, after: "r1 m1 m2 m3 w2", targets: "w1"},
		"one that has left":         {config: newWorker, names: []string{"w3"}, after: "r1 m1 m2 m3 w1 w2", targets: "w3"},
		"an unknown one":            {names: []string{"w9"}, refused: "no host of the cluster is called w9: it has r1, m1, m2, m3, w1, w2"},
		"all masters":               {names: []string{"m1", "m2", "m3"}, refused: "host m1: it is the last master of the cluster"},
		"the registry":              {names: []string{"r1"}, refused: "host r1: all nodes pull images from the registry on it"},
		"the endpoint":              {record: []string{"  etcd:", "  controlPlaneEndpoint: {address: 192.0.2.12}\n  etcd:"}, names: []string{"m2"}, refused: "host m2: spec.controlPlaneEndpoint.address is its address"},
		"beside the endpoint":       {record: []string{"  etcd:", "  controlPlaneEndpoint: {address: 192.0.2.12}\n  etcd:"}, names: []string{"m1"}, after: "r1 m2 m3 w1 w2", targets: "m1"},
		"the last etcd member":      {record: []string{"registry: [r1],", "registry: [r1], etcd: [w1],", "{type: kubeadm}", "{type: kubexm}"}, names: []string{"w1"}, refused: "host w1: it is the last etcd member of the cluster"},
		"a time server":             {record: []string{"  etcd:", "  system: {ntpServers: [w1]}\n  etcd:"}, names: []string{"w1"}, refused: "host w1: the other hosts take the time from it"},
		"the last load balancer":    {record: balanced, names: []string{"b1", "b2"}, refused: "host b1: it is the last load balancer of the cluster"},
		"one of the load balancers": {record: balanced, names: []string{"b1"}, after: "r1 m1 m2 m3 w1 w2 b2", targets: "b1"},
		"another cluster's":         {record: []string{"name: demo", "name: other"}, names: []string{"w1"}, refused: "the masters belong to cluster other"},
	} {
		t.Run(name, func(t *testing.T) {
			config := append(append([]string{}, x.record...), x.config...)
			if name == "another cluster's" {
				config = nil
			}
			m, err := state.NewLeaving(clusterOf(t, config...), recordOf(t, x.record...), nil, x.names)
			if x.refused != "" {
				if err == nil || !strings.Contains(err.Error(), x.refused) {
					t.Fatalf("%v", err)
				}
				if no := (*state.MembershipError)(nil); errors.As(err, &no) && no.Advice() == "" {
					t.Error("no advice")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(m.Targets, " "); got != x.targets || hostsOf(m.After) != x.after || hostsOf(m.Before) != hostsOf(recordOf(t, x.record...).Config) {
				t.Errorf("%s leave, after %s, before %s", got, hostsOf(m.After), hostsOf(m.Before))
			}
			recorded(t, m.After)
			if m.After.Spec.Kubernetes.MaxPods != 110 {
				t.Error("a difference is applied that nobody asked for")
			}
		})
	}
}

// balanced makes the cluster one with two load balancers.
var balanced = []string{
	"  ssh:", "    - {name: b1, address: 192.0.2.41}\n    - {name: b2, address: 192.0.2.42}\n  ssh:", "worker: ['w[1:2]']", "worker: ['w[1:2]'], loadbalancer: [b1, b2]",
	"  etcd:", "  controlPlaneEndpoint: {address: 192.0.2.100}\n  loadBalancer: {external: {type: kubexm-kh}}\n  etcd:",
}
