package installer_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/installer/pipeline"
	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/versions"
)

// choice is one value of a dimension: a name, and what the config says.
type choice struct{ name, text string }

// dimension is one thing that clusters differ in.
type dimension struct {
	name   string
	values []choice
}

// dimensions are all of them. Each combination of their values is either refused with a reason, or
// planned and created.
var dimensions = []dimension{
	{"endpoint", []choice{
		{"the first master", ""},
		{"kubexm-kh", "controlPlaneEndpoint: {domain: api.site.example, address: VIP}, loadBalancer: {external: {type: kubexm-kh, keepalived: {interface: eth0}}}"},
		{"kubexm-kn", "controlPlaneEndpoint: {domain: api.site.example, address: VIP}, loadBalancer: {external: {type: kubexm-kn, keepalived: {interface: eth0}}}"},
		{"haproxy on workers", "loadBalancer: {internal: {type: haproxy}}"},
		{"nginx on workers", "loadBalancer: {internal: {type: nginx}}"},
		{"kube-vip", "controlPlaneEndpoint: {domain: api.site.example, address: VIP}, loadBalancer: {internal: {type: kube-vip, kubeVip: {interface: eth0}}}"},
		{"kubexm-kh and nginx", "controlPlaneEndpoint: {domain: api.site.example, address: VIP}, loadBalancer: {external: {type: kubexm-kh, keepalived: {interface: eth0}}, internal: {type: nginx}}"},
		{"the site's", "controlPlaneEndpoint: {domain: api.site.example, address: VIP}, loadBalancer: {external: {type: external}}"},
	}},
	{"etcd", []choice{
		{"of kubeadm", "type: kubeadm"},
		{"of kubexm", "type: kubexm"},
		{"external", "type: external, external: {endpoints: ['http://ETCD:2379']}"}, // without TLS it needs no files
	}},
	{"network", []choice{
		{"flannel vxlan", "plugin: flannel"},
		{"flannel host-gw", "plugin: flannel, flannel: {backend: host-gw}"},
		{"flannel wireguard", "plugin: flannel, flannel: {backend: wireguard}"},
		{"calico vxlan", "plugin: calico, calico: {vxlanMode: Always}"},
		{"calico ipip", "plugin: calico, calico: {ipipMode: Always}"},
		{"calico bgp", "plugin: calico, calico: {ipipMode: Never, vxlanMode: Never}"},
		{"cilium", "plugin: cilium"},
		{"none", "plugin: none"},
	}},
	{"kube-proxy", []choice{{"iptables", ""}, {"ipvs", ""}, {"nftables", ""}}},
	{"family", []choice{
		{"IPv4", ""},
		{"IPv6", ", kubePodsCIDR: ['fd00:10::/56'], kubeServiceCIDR: ['fd00:20::/112']"},
		{"both", ", kubePodsCIDR: '10.233.64.0/18,fd00:10::/56', kubeServiceCIDR: '10.233.0.0/18,fd00:20::/112'"},
	}},
	{"DNS", []choice{{"CoreDNS", ""}, {"a cache", "nodelocaldns: {enabled: true}"}}},
	{"beside the network", []choice{{"nothing", ""}, {"multus", ", multus: {enabled: true}"}}},
	{"registry", []choice{{"of kubexm", ""}, {"none", ""}}},
}

// combination has the index of a value for each dimension.
type combination []int

func (c combination) of(name string) choice {
	i := slices.IndexFunc(dimensions, func(d dimension) bool { return d.name == name })
	return dimensions[i].values[c[i]]
}

func (c combination) String() string {
	var all []string
	for i, d := range dimensions {
		all = append(all, d.values[c[i]].name)
	}
	return strings.Join(all, ", ")
}

// combined returns how many combinations there are.
func combined() int {
	n := 1
	for _, d := range dimensions {
		n *= len(d.values)
	}
	return n
}

// combinationAt returns the combination of a number below combined.
func combinationAt(n int) combination {
	c := make(combination, len(dimensions))
	for i, d := range dimensions {
		c[i], n = n%len(d.values), n/len(d.values)
	}
	return c
}

// config is the combination as a config: three masters and a worker.
func (c combination) config() string {
	hosts, roles, endpoint := "", "", c.of("endpoint")
	if strings.HasPrefix(endpoint.name, "kubexm-") {
		hosts, roles = "    - {name: b1, address: 192.0.2.31, internalAddress: 'NET31'}\n    - {name: b2, address: 192.0.2.32, internalAddress: 'NET32'}\n", ", loadbalancer: [b1, b2]"
	}
	if c.of("etcd").name != "external" {
		roles += ", etcd: [m1, m2, m3]"
	}
	registry := ""
	if c.of("registry").name == "none" {
		registry = "  registry: {type: none}\n"
	} else {
		hosts, roles = hosts+"    - {name: r1, address: 192.0.2.10, internalAddress: 'NET10'}\n", roles+", registry: [r1]"
	}
	text := `apiVersion: kubexm.mensylisir.io/v1alpha1
kind: Cluster
metadata: {name: demo}
spec:
  hosts:
    - {name: m1, address: 192.0.2.11, internalAddress: 'NET11'}
    - {name: m2, address: 192.0.2.12, internalAddress: 'NET12'}
    - {name: m3, address: 192.0.2.13, internalAddress: 'NET13'}
    - {name: w1, address: 192.0.2.21, internalAddress: 'NET21'}
` + hosts + `  ssh: {user: root, password: secret}
  roleGroups: {master: ["m[1:3]"], worker: [w1]` + roles + `}
  kubernetes: {version: v1.34.10, kubeProxy: {mode: ` + c.of("kube-proxy").name + `}}
  etcd: {` + c.of("etcd").text + `}
  network: {` + c.of("network").text + c.of("family").text + c.of("beside the network").text + `}
  dns: {` + c.of("DNS").text + `}
` + registry + `  bundle: {operatingSystems: [{name: debian, releases: ["12"]}]}
`
	for line := range strings.SplitSeq(strings.Replace(endpoint.text, "}, loadBalancer", "}\nloadBalancer", 1), "\n") {
		if line != "" {
			text += "  " + line + "\n"
		}
	}
	first, host := "192.0.2.", ""
	switch c.of("family").name {
	case "IPv6":
		first = "2001:db8::"
	case "both":
		host = ",2001:db8::"
	}
	for _, n := range []string{"10", "11", "12", "13", "21", "31", "32"} {
		own := first + n
		if host != "" {
			own += host + n
		}
		text = strings.ReplaceAll(text, "NET"+n, own)
	}
	etcd := first + "41"
	if strings.Contains(first, ":") {
		etcd = "[" + etcd + "]"
	}
	return strings.NewReplacer("VIP", "'"+first+"100'", "ETCD", etcd).Replace(text)
}

// refusals returns why a combination cannot be had; nil if it can.
func (c combination) refusals(t *testing.T, catalog *versions.Catalog) []string {
	t.Helper()
	cluster, problems := manifest.Decode(strings.NewReader(c.config()))
	var lock *manifest.Lock
	if problems.Err() == nil {
		lock, problems = catalog.Resolve(cluster)
	}
	var out []string
	for _, p := range problems {
		if p.Severity == manifest.Error {
			out = append(out, p.Path+": "+p.Message)
		}
	}
	if len(out) > 0 {
		return out
	}
	g, err := plan.Build(pipeline.Create(), plan.Scope{Want: cluster, Set: cluster.Spec.Kubernetes.Version})
	if err != nil {
		t.Fatalf("%s: %v", c, err)
	}
	if err := g.CheckBundle(lock, lock.Sets[0].Name); err != nil {
		t.Errorf("%s: %v", c, err)
	}
	return nil
}

// refusalsPath lists why combinations are refused.
const refusalsPath = "testdata/combinations.txt"

// TestEveryCombinationIsPlanned: each combination is refused for a reason that refusalsPath lists,
// or its plan is complete by its lock. KUBEXM_ALL=1 takes all of them, and then each reason of the
// list has to be given.
func TestEveryCombinationIsPlanned(t *testing.T) {
	t.Parallel()
	catalog, problems := versions.Load()
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	stride := 61 // no divisor of what there is: each value is met
	switch {
	case os.Getenv("KUBEXM_ALL") != "" || *update:
		stride = 1
	case testing.Short():
		stride = 601
	}
	accepted, tried, reasons := 0, 0, map[string]bool{}
	for n := 0; n < combined(); n += stride {
		tried++
		why := combinationAt(n).refusals(t, catalog)
		if len(why) == 0 {
			accepted++
		}
		for _, line := range why {
			reasons[line] = true
		}
	}
	got := make([]string, 0, len(reasons))
	for line := range reasons {
		got = append(got, line)
	}
	slices.Sort(got)
	if *update {
		if err := os.WriteFile(refusalsPath, []byte(strings.Join(got, "\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(filepath.Clean(refusalsPath))
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Split(strings.TrimSpace(string(text)), "\n")
	for _, line := range got {
		if !slices.Contains(want, line) {
			t.Errorf("refused for another reason than those of %s: %s", refusalsPath, line)
		}
	}
	if stride == 1 && len(got) != len(want) {
		t.Errorf("%d reasons, and %s has %d: run go test ./installer -run %s -update", len(got), refusalsPath, len(want), t.Name())
	}
	if t.Logf("%d of %d are planned", accepted, tried); accepted*4 < tried {
		t.Errorf("only %d of %d are planned", accepted, tried)
	}
}

// fill completes a combination whose undecided values are -1 with values that are not refused, and
// that are in most of the pairs to be covered.
func (c combination) fill(refused func(combination) bool, gain func(combination) int) (combination, bool) {
	at := slices.Index(c, -1)
	if at < 0 {
		return c, !refused(c)
	}
	options := make([]int, len(dimensions[at].values))
	for v := range options {
		options[v] = v
	}
	of := func(v int) combination { d := slices.Clone(c); d[at] = v; return d }
	slices.SortStableFunc(options, func(a, b int) int { return gain(of(b)) - gain(of(a)) })
	for _, v := range options {
		if full, ok := of(v).fill(refused, gain); ok {
			return full, true
		}
	}
	return nil, false
}

// pair is two values of different dimensions.
type pair struct{ i, v, j, w int }

// pairs calls do with each pair of a combination, as far as it is decided.
func (c combination) pairs(do func(pair)) {
	for i := range c {
		for j := i + 1; j < len(c); j++ {
			if c[i] >= 0 && c[j] >= 0 {
				do(pair{i, c[i], j, c[j]})
			}
		}
	}
}

// inPairs returns combinations that together have each pair of values that is not refused.
func inPairs(refused func(combination) bool) (all []combination, never []string) {
	left := map[pair]bool{}
	for i, d := range dimensions {
		for j := i + 1; j < len(dimensions); j++ {
			for v := range d.values {
				for w := range dimensions[j].values {
					left[pair{i, v, j, w}] = true
				}
			}
		}
	}
	order := make([]pair, 0, len(left))
	for p := range left {
		order = append(order, p)
	}
	slices.SortFunc(order, func(a, b pair) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	for _, p := range order {
		if !left[p] {
			continue
		}
		c := make(combination, len(dimensions))
		for i := range c {
			c[i] = -1
		}
		c[p.i], c[p.j] = p.v, p.w
		tries := 0
		full, ok := c.fill(func(c combination) bool { tries++; return tries > 100 || refused(c) }, func(c combination) (n int) {
			c.pairs(func(p pair) {
				if left[p] {
					n++
				}
			})
			return n
		})
		if !ok {
			never = append(never, dimensions[p.i].values[p.v].name+" with "+dimensions[p.j].values[p.w].name)
			delete(left, p)
			continue
		}
		full.pairs(func(p pair) { delete(left, p) })
		all = append(all, full)
	}
	return all, never
}
