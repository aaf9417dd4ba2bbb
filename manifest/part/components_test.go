package part_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
)

// TestComponents: a host has what its roles bring, and no add-on is of a host.
func TestComponents(t *testing.T) {
	c, problems := manifest.Decode(strings.NewReader(`apiVersion: kubexm.mensylisir.io/v1alpha1
kind: Cluster
metadata: {name: demo}
spec:
  hosts:
    - {name: m1, address: 192.0.2.11}
    - {name: w1, address: 192.0.2.21}
    - {name: e1, address: 192.0.2.31}
    - {name: r1, address: 192.0.2.41}
    - {name: x1, address: 192.0.2.51}
  ssh: {user: root, password: secret}
  roleGroups: {master: [m1], worker: [w1], etcd: [e1], registry: [r1]}
  kubernetes: {version: v1.34.10}
  etcd: {type: kubexm}
  network: {plugin: flannel}
`))
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	all := map[string]string{"kubelet": "1", "containerd": "2", "kube-apiserver": "3", "etcd": "4", "registry": "5", "flannel": "6", "ingress-nginx": "7"}
	for host, want := range map[string]string{
		"m1": "containerd flannel kube-apiserver kubelet", "w1": "containerd flannel kubelet", "e1": "etcd", "r1": "registry", "x1": "",
	} {
		got := part.Components(c, host, all)
		if names := strings.Join(slices.Sorted(maps.Keys(got)), " "); names != want {
			t.Errorf("%s has %q, want %q", host, names, want)
		}
		for name, version := range got {
			if version != all[name] {
				t.Errorf("%s: %s %s", host, name, version)
			}
		}
	}
	if got := part.Components(c, "m1", nil); got != nil {
		t.Errorf("of an unknown release: %v", got)
	}
}
