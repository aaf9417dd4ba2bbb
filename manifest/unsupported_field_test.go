package manifest

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestEveryFieldIsUsedOrWaits: no field of the config is silently ignored.
func TestEveryFieldIsUsedOrWaits(t *testing.T) {
	leaves := fieldPaths()
	for _, leaf := range leaves {
		used := slices.Contains(SupportedFields(), leaf)
		var waits []string
		for _, w := range UnsupportedFields() {
			if under(leaf, w.Path) {
				waits = append(waits, w.Path)
			}
		}
		switch {
		case !used && len(waits) == 0:
			t.Errorf("%s: nothing acts on it, and nothing says so", leaf)
		case len(waits) > 1:
			t.Errorf("%s: waits twice, by %v", leaf, waits)
		case used && slices.Contains(waits, leaf):
			t.Errorf("%s: is used, but listed as not yet built", leaf)
		}
	}
	for _, u := range SupportedFields() {
		if !slices.Contains(leaves, u) {
			t.Errorf("%s: is listed as used, but is not a leaf field", u)
		}
	}
	root := ConfigFields()
	for _, w := range UnsupportedFields() {
		if f, ok := root.Find(w.Path); !ok || f.Path != w.Path {
			t.Errorf("%s: is listed as not yet built, but is not a field", w.Path)
		}
		if w.Feature == "" {
			t.Errorf("%s: waits for nothing", w.Path)
		}
	}
}

// TestUsedFieldsAreRead: a field that is listed as used is selected by the
// command's code, in the place where the config has it.
func TestUsedFieldsAreRead(t *testing.T) {
	reads, chains := readConfig(t), fieldChains()
	toldApart(t, reads, chains)
	for _, u := range SupportedFields() {
		if u == "apiVersion" || u == "kind" {
			continue // the decoder itself acts on them
		}
		at := u
		if rest, ok := strings.CutPrefix(u, "spec.ssh."); ok {
			at = "spec.hosts." + rest // every host takes it over: TestHostsInherit
		}
		if m := reads.missing(chains[at]); m != "" || len(chains[at]) == 0 {
			t.Errorf("%s: no code reads it: %s is missing", u, m)
		}
	}
}

// TestWaitingFor: a mapping of which a part is used does not wait as a whole.
func TestWaitingFor(t *testing.T) {
	leaf, waits := "", UnsupportedFields()[0]
	for _, u := range SupportedFields() {
		if MissingFeature(u) != "" {
			t.Errorf("%s is used, and waits for %s", u, MissingFeature(u))
		}
		if under(u, waits.Path) {
			leaf = u
		}
	}
	if got := MissingFeature(waits.Path); (leaf == "") != (got == waits.Feature) {
		t.Errorf("%s waits for %q", waits.Path, got)
	}
	if got := MissingFeature("spec.monitoring.enabled"); got == "" {
		t.Error("a field under one that waits does not wait")
	}
}

// TestNotYetBuiltIsSaid: once for each field that waits, at its first place.
func TestNotYetBuiltIsSaid(t *testing.T) {
	_, problems := Decode(strings.NewReader(header + `
  kubernetes: {version: v1.34.10}
  etcd: {backupDir: /data}
  monitoring: {enabled: false}
`))
	var got []string
	for _, p := range problems {
		if strings.HasPrefix(p.Message, "accepted, not yet built: ") && p.Severity == Warning {
			got = append(got, p.String())
		}
	}
	want := []string{"6:21: warning: spec.etcd.backupDir: accepted, not yet built: etcd backups", "7:15: warning: spec.monitoring: accepted, not yet built: monitoring"}
	d := parse(strings.NewReader(header + `
  kubernetes: {version: v1.34.10}
  addons:
    - {name: a, type: yaml}
    - {namespace: x, name: b}
    - {namespace: y, name: c}
`))
	_, _ = decodeCluster(d)
	if got := d.FirstWritten()["spec.addons.namespace"]; got != "spec.addons[1].namespace" {
		t.Errorf("a field of a list is first written at %s", got)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}

// installable is a config with hosts of which all can be installed.
const installable = `
  kubernetes: {version: v1.34.10}
  hosts: [{name: node1, address: 192.0.2.1}, {name: node2, address: 192.0.2.2}]
  roleGroups: {etcd: [node1], master: [node1], worker: [node2], registry: [node2]}
  network: {plugin: flannel}
`

// TestEachWaitingFieldIsRefused: a field that waits is refused for itself when a
// config asks for it, or with the value that it holds the settings of.
func TestEachWaitingFieldIsRefused(t *testing.T) {
	if ps := decodeSpec(t, installable).NotInstallable(); len(ps) != 0 {
		t.Fatal(ps)
	}
	asks := map[string]string{
		"spec.roleGroups.loadbalancer": "  hosts: [{name: node1, address: 192.0.2.1}, {name: node2, address: 192.0.2.2}, {name: node3, address: 192.0.2.3}]\n" +
			"  roleGroups: {master: [node1], worker: [node2], registry: [node2], loadbalancer: [node3]}\n" +
			"  controlPlaneEndpoint: {address: 192.0.2.9}\n  loadBalancer: {external: {type: kubexm-kh}}\n",
		"spec.kubernetes.kubeProxy.extraArgs": "  kubernetes: {version: v1.34.10, kubeProxy: {extraArgs: {v: 3}}}\n",
		"spec.kubernetes.autoRenewCerts":      "  kubernetes: {version: v1.34.10, autoRenewCerts: true}\n",
		"spec.kubernetes.kata":                "  kubernetes: {version: v1.34.10, kata: {enabled: true}}\n",
		"spec.etcd.backupDir":                 "  etcd: {backupDir: /backups}\n",
		"spec.etcd.backupPeriodHours":         "  etcd: {backupPeriodHours: 24}\n",
		"spec.etcd.keepBackupNumber":          "  etcd: {keepBackupNumber: 5}\n",
		"spec.monitoring":                     "  monitoring: {enabled: true}\n",
	}
	for _, w := range UnsupportedFields() {
		spec, ok := asks[w.Path]
		if w.Choice != "" {
			if ok || !slices.ContainsFunc(Choices(), func(c Choice) bool { return c.Path == w.Choice }) {
				t.Errorf("%s is refused with %s, which is no choice", w.Path, w.Choice)
			}
			continue
		}
		ps := decodeSpec(t, override(installable, spec)).NotInstallable()
		if !ok || !slices.ContainsFunc(ps, func(p Problem) bool { return p.Path == w.Path && p.Severity == Error && p.Advice != "" }) {
			t.Errorf("%s: asked for, and not refused: %v", w.Path, ps)
		}
	}
}

// TestSwitchedOffIsInstallable: a field that is written, and asks for nothing, keeps
// nobody from installing.
func TestSwitchedOffIsInstallable(t *testing.T) {
	c := decodeSpec(t, override(installable, `
  kubernetes: {version: v1.34.10, autoRenewCerts: false, kata: {enabled: false}}
  etcd: {backupPeriodHours: 0}
  network: {plugin: flannel, multus: {enabled: false}, calico: {vethMTU: 1400}}
  monitoring: {enabled: false}
  controlPlaneEndpoint: {address: 192.0.2.9, port: 443}
  loadBalancer: {external: {type: external}}
`))
	if ps := c.NotInstallable(); len(ps) != 0 {
		t.Errorf("refused: %v", ps)
	}
	if ps := decodeSpec(t, "\n  kubernetes: {version: v1.34.10}\n").NotInstallable(); len(ps) != 1 || ps[0].Path != "spec.hosts" {
		t.Errorf("of a config without hosts: %v", ps)
	}
}

// decodeSpec reads a config that may hold warnings.
func decodeSpec(t *testing.T, spec string) *Cluster {
	t.Helper()
	c, problems := Decode(strings.NewReader(header + spec))
	if c == nil {
		t.Fatalf("%s: %v", spec, problems)
	}
	return c
}

// override puts the fields of spec that over holds too in its place.
func override(spec, over string) string {
	var b strings.Builder
	for line := range strings.Lines(spec) {
		name, _, _ := strings.Cut(strings.TrimSpace(line), ":")
		if name == "" || !strings.Contains(over, "\n  "+name+":") && !strings.HasPrefix(over, "  "+name+":") {
			b.WriteString(line)
		}
	}
	return "\n" + b.String() + strings.TrimPrefix(over, "\n")
}

// TestChoicesAreSaid: of a cluster with hosts, each value that cannot be installed
// yet is said, written or not; a bundle without hosts asks for none.
func TestChoicesAreSaid(t *testing.T) {
	said := func(spec string) []string {
		_, problems := Decode(strings.NewReader(header + spec))
		var out []string
		for _, p := range problems {
			if strings.HasPrefix(p.Message, "accepted, not yet built: installing ") {
				out = append(out, p.String())
			}
		}
		return out
	}
	const hosts = `
  kubernetes: {version: v1.34.10}
  hosts: [{name: node1, address: 192.0.2.1}, {name: node2, address: 192.0.2.2}]
  roleGroups: {etcd: [node1], master: [node1], worker: [node2], registry: [node2]}
`
	if got := said("\n  kubernetes: {version: v1.34.10}\n"); len(got) != 0 {
		t.Errorf("without hosts: %v", got)
	}
	if got := said(hosts + "  etcd: {type: kubeadm}\n  network: {plugin: flannel}\n"); len(got) != 0 {
		t.Errorf("of what can be installed: %v", got)
	}
	want := []string{
		"8:21: warning: spec.network.plugin: accepted, not yet built: installing with kube-ovn; only " + sentence(words[Network]("Plugin", "built")) + " can be installed",
		"9:20: warning: spec.registry.type: accepted, not yet built: installing with harbor; only registry, external and none can be installed",
	}
	got := said(hosts + "  network: {plugin: kube-ovn}\n  registry: {type: harbor}\n")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
	root := ConfigFields()
	for _, o := range Choices() {
		f, _ := root.Find(o.Path)
		if !slices.Contains(SupportedFields(), o.Path) {
			t.Errorf("%s: nothing acts on it", o.Path)
		}
		for _, v := range o.Supported {
			if !slices.Contains(f.Enum, v) {
				t.Errorf("%s does not take %s", o.Path, v)
			}
		}
	}
}
