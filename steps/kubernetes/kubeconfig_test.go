package kubernetes

import (
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

const adminConf = `apiVersion: v1
kind: Config
clusters:
- cluster:
    certificate-authority-data: Y2E=
    server: https://lb.kubexm.local:6443
  name: kubernetes
current-context: kubernetes-admin@kubernetes
users:
- name: kubernetes-admin
  user: {client-key-data: a2V5}
`

func TestReachable(t *testing.T) {
	for address, want := range map[string]string{
		"10.0.0.1":    "https://10.0.0.1:6443",
		"2001:db8::1": "https://[2001:db8::1]:6443",
	} {
		got, err := reachable([]byte(adminConf), address)
		if err != nil {
			t.Fatal(err)
		}
		var doc struct {
			Clusters []struct{ Cluster map[string]string }
			Users    []struct{ User map[string]string }
		}
		if err := yaml.Unmarshal(got, &doc); err != nil {
			t.Fatal(err)
		}
		c := doc.Clusters[0].Cluster
		if c["server"] != want || c["tls-server-name"] != "lb.kubexm.local" || c["certificate-authority-data"] != "Y2E=" {
			t.Errorf("%s: %v", address, c)
		}
		if doc.Users[0].User["client-key-data"] != "a2V5" {
			t.Errorf("%s: %v", address, doc.Users)
		}
	}
	if got, err := reachable([]byte(adminConf), ""); err != nil || string(got) != adminConf {
		t.Errorf("under its name: %q, %v", got, err)
	}
	for _, bad := range []string{"", "clusters: []", "clusters: [{cluster: {server: x}}]", "{", "clusters: [1]"} {
		if _, err := reachable([]byte(bad), "10.0.0.1"); err == nil || !strings.Contains(err.Error(), "admin.conf") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
