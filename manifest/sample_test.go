package manifest

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSample: what is said about the documents' sample as it stands, but for what is
// not built yet.
func TestSample(t *testing.T) {
	f, err := os.Open("testdata/sample.yaml")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	c, problems := Decode(f)
	if c != nil {
		t.Error("a config with errors gave a cluster")
	}
	golden(t, "testdata/sample.problems", problemLines(problems))
}

// TestSampleMended: with the mends that its head lists, the sample decodes, and
// second spellings are where their fields are.
func TestSampleMended(t *testing.T) {
	text, err := os.ReadFile("testdata/sample-mended.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c, problems := Decode(strings.NewReader(string(text)))
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	if left := problemLines(problems); left != "" {
		t.Errorf("warnings are left:\n%s", left)
	}
	got := map[string]any{
		"runtime": c.Spec.Runtime.Type + " " + c.Spec.Runtime.Version, "external": c.Spec.LoadBalancer.External.Type,
		"vip": c.Spec.ControlPlaneEndpoint.Address, "sans": len(c.Spec.Kubernetes.APIServer.CertSANs),
		"proxy": c.Spec.Kubernetes.KubeProxy.Mode, "autorenew": c.Spec.Kubernetes.AutoRenewCerts,
		"mirror": c.Spec.Runtime.Containerd.RegistryMirrors[0], "data": c.Spec.Runtime.Containerd.DataDir,
		"masters": strings.Join(c.Spec.RoleGroups.Names(RoleMaster), " "), "internal": strings.Join(c.Spec.Hosts[0].InternalAddress, " "),
		"pods": strings.Join(c.Spec.Network.KubePodsCIDR, " "), "addons": len(c.Spec.Addons), "registry": c.Spec.Registry.Type,
		"mask": c.Spec.Kubernetes.NodeCIDRMaskSizeIPv6,
	}
	want := map[string]any{
		"runtime": "containerd 1.7.6", "external": "kubexm-kh", "vip": "172.16.0.100", "sans": 2, "proxy": "ipvs", "autorenew": true,
		"mirror": "aliyun.com", "data": "/var/lib/containerd", "masters": "node4 node5 node6", "internal": "172.16.0.2 2022::1",
		"pods": "10.233.64.0/18 fd85:ee78:d8a6:8607::1:0000/112", "addons": 2, "registry": "registry", "mask": 120,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("mended sample (-want +got):\n%s", diff)
	}
}

// golden compares got with a file, or writes it with -update.
func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}
