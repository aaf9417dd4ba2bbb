package installer

import (
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/runner"
)

// TestDiskHealth: the disk with the images needs more free space than that of the kubelet; a disk
// with both is one problem.
func TestDiskHealth(t *testing.T) {
	t.Parallel()
	c, problems := manifest.Decode(strings.NewReader(`apiVersion: kubexm.mensylisir.io/v1alpha1
kind: Cluster
metadata: {name: demo}
spec:
  hosts: [{name: m1, address: 192.0.2.11}, {name: r1, address: 192.0.2.10}]
  ssh: {user: root, password: secret}
  roleGroups: {master: [m1], worker: [m1], registry: [r1]}
  kubernetes: {version: v1.34.10}
  etcd: {type: kubeadm}
  network: {plugin: flannel}
`))
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	for name, x := range map[string]struct {
		disks  []runner.Disk
		detail string
		want   string
	}{
		"enough":                {[]runner.Disk{{Mount: "/", Size: 100, Free: 15}}, "at least 15% free: / on m1", ""},
		"too little for images": {[]runner.Disk{{Mount: "/", Size: 100, Free: 14}}, "at least 14% free: / on m1", "/ on m1 has 14% free; /var/lib/containerd needs 15%"},
		"both":                  {[]runner.Disk{{Mount: "/", Size: 100, Free: 1}}, "at least 1% free: / on m1", "/ on m1 has 1% free; /var/lib/containerd needs 15%"},
		"the kubelet's own": {[]runner.Disk{{Mount: "/", Size: 100, Free: 50}, {Mount: "/var/lib/kubelet", Size: 100, Free: 9}},
			"at least 9% free: /var/lib/kubelet on m1", "/var/lib/kubelet on m1 has 9% free; /var/lib/kubelet needs 10%"},
		"no disk is known": {nil, "not read", ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := diskHealth(c, func(m manifest.Host) *steps.Host {
				if m.Name != "m1" {
					return nil
				}
				return &steps.Host{Host: m, Facts: runner.Facts{Disks: x.disks}}
			})
			if got := strings.Join(h.Problems, "; "); h.Detail != x.detail || got != x.want {
				t.Errorf("%s: %s", h.Detail, got)
			}
		})
	}
}
