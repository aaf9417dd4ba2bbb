package manifest

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const small = `apiVersion: kubexm.mensylisir.io/v1alpha1
kind: Cluster
metadata: {name: demo}
spec:
  hosts:
    - {name: m1, address: 192.0.2.11, labels: {disk: ssd}, taints: [{key: only, value: builds, effect: NoSchedule}]}
    - {name: w1, address: 192.0.2.21}
    - {name: w2, address: 192.0.2.22}
  ssh: {user: root, password: secret}
  roleGroups: {master: [m1], worker: ['w[1:2]'], registry: [m1]}
  kubernetes: {version: v1.32.2, apiServer: {extraArgs: {v: 2}}}
  etcd: {type: kubeadm, heartbeatInterval: 250}
  network: {plugin: flannel}
  registry: {auths: {hub.site: {username: otto, password: secret}}}
  dns: {dnsEtcHosts: 192.0.2.50 git.site, coredns: {upstreamDNSServers: [192.0.2.53]}}
  system: {keep: [swap], ntpServers: [192.0.2.67]}
  addons: [{name: shop, type: helm, source: 'https://charts.example', version: 1.2.3, values: {colour: red}}]
`

func decoded(t *testing.T, text string) *Cluster {
	t.Helper()
	c, problems := Decode(strings.NewReader(text))
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	return c
}

// TestDiff tells each change, and whether install leaves it as it was.
func TestDiff(t *testing.T) {
	var out strings.Builder
	for _, edit := range [][]string{
		{"nothing"},
		{"an argument", "{v: 2}", "{v: 3}"},
		{"a worker less", "    - {name: w2, address: 192.0.2.22}\n", "", "'w[1:2]'", "w1"},
		{"a worker more", "  ssh:", "    - {name: w3, address: 192.0.2.23}\n  ssh:", "'w[1:2]'", "'w[1:3]'"},
		{"a worker written otherwise", "'w[1:2]'", "w1, w2"},
		{"another role", "registry: [m1]", "registry: [w1]"},
		{"a label exchanged", "disk: ssd", "disk: hdd"},
		{"a label less", "disk: ssd", "room: a"},
		{"a taint's value", "value: builds", "value: tests"},
		{"a taint less", "key: only", "key: just"},
		{"a password and a login", "secret", "other", "user: root", "user: anna"},
		{"etcd's interval", "250", "251"},
		{"another etcd", "type: kubeadm", "type: kubexm"},
		{"an add-on less", "[{name: shop, type: helm, source: 'https://charts.example', version: 1.2.3, values: {colour: red}}]", "[]"},
		{"an add-on's values", "colour: red", "colour: blue"},
		{"a registry less", "hub.site", "hut.site"},
		{"DNS less", "dnsEtcHosts: 192.0.2.50 git.site, ", ""},
		{"no DNS", "{dnsEtcHosts: 192.0.2.50 git.site, coredns: {upstreamDNSServers: [192.0.2.53]}}", "{}"},
		{"one kept less", "[swap]", "[]"},
		{"one kept more", "[swap]", "[swap, firewall]"},
		{"another clock", "[192.0.2.67]", "[192.0.2.68]"},
		{"no clock", "[192.0.2.67]", "[]"},
	} {
		after := small
		for i := 1; i < len(edit); i += 2 {
			if !strings.Contains(after, edit[i]) {
				t.Fatalf("%s: there is no %q", edit[0], edit[i])
			}
			after = strings.ReplaceAll(after, edit[i], edit[i+1])
		}
		was, now := decoded(t, small), decoded(t, after)
		fixed := map[Change]bool{}
		for _, c := range RefusedChanges(was, now) {
			fixed[c] = true
		}
		fmt.Fprintf(&out, "# %s\n", edit[0])
		for _, c := range Diff(was, now) {
			does := "applied"
			if fixed[c] {
				does = "refused"
			}
			fmt.Fprintf(&out, "%-8s%s\n", does, c.Line(AnyHosts))
		}
	}
	const file = "testdata/diff.txt"
	if *update {
		if err := os.WriteFile(file, []byte(out.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), out.String()); d != "" {
		t.Errorf("%s (-want +got):\n%s", file, d)
	}
	if strings.Contains(out.String(), "secret") {
		t.Error("a secret is in the output")
	}
}

// TestApplied: what was applied counts, and the config says how hosts are reached.
func TestApplied(t *testing.T) {
	now := decoded(t, strings.NewReplacer("address: 192.0.2.21}", "address: 198.51.100.21}", "    - {name: w2, address: 192.0.2.22}\n", "    - {name: w3, address: 192.0.2.23}\n",
		"'w[1:2]'", "w1, w3", "type: kubeadm", "dataDir: /srv/etcd, type: kubexm", "root, password: secret", "root, password: other, port: 2222").Replace(small))
	c := now.Applied(decoded(t, small))
	var got []string
	for _, h := range c.Spec.Hosts {
		password, err := h.Password.Reveal(os.LookupEnv, os.ReadFile)
		if err != nil {
			t.Error(err)
		}
		got = append(got, fmt.Sprintf("%s %s:%d %s %v", h.Name, h.Address, h.Port, password, c.RolesOf(h.Name)))
	}
	want := []string{"m1 192.0.2.11:2222 other [master registry]", "w1 198.51.100.21:2222 other [worker]", "w2 192.0.2.22:2222 other [worker]", "w3 192.0.2.23:2222 other [worker]"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if e := c.Spec.Etcd; e.Type != "kubeadm" || e.DataDir != "/var/lib/etcd" {
		t.Errorf("etcd: %s in %s", e.Type, e.DataDir)
	}
	if got := fmt.Sprint(c.Without([]string{"w2"}).Spec.RoleGroups.Names(RoleWorker), c.Only([]string{"w2"}).Spec.RoleGroups); got != "[w1 w3] {[] [] [w2] [] []}" {
		t.Error(got)
	}
}
