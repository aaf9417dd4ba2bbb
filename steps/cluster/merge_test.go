package cluster_test

import (
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/steps/cluster"
)

const ofDemo = `apiVersion: v1
kind: Config
clusters:
    - name: demo
      cluster: {server: https://192.0.2.11:6443}
contexts:
    - name: demo
      context: {cluster: demo, user: demo-admin}
current-context: demo
users:
    - name: demo-admin
      user: {client-key-data: bmV3}
`

// TestMergeKubeconfig: what a file holds of other clusters stays, what it holds of this
// one is replaced, and a second merge changes nothing.
func TestMergeKubeconfig(t *testing.T) {
	other := strings.NewReplacer("demo", "prod", "192.0.2.11", "192.0.2.99", "bmV3", "cHJvZA==").Replace(ofDemo)
	old := strings.NewReplacer("192.0.2.11", "192.0.2.12", "bmV3", "b2xk").Replace(ofDemo)
	merged, err := cluster.MergeKubeconfig([]byte(other), []byte(old))
	if err != nil {
		t.Fatal(err)
	}
	if merged, err = cluster.MergeKubeconfig(merged, []byte(ofDemo)); err != nil {
		t.Fatal(err)
	}
	text := string(merged)
	for want, n := range map[string]int{"192.0.2.99": 1, "192.0.2.11": 1, "192.0.2.12": 0, "bmV3": 1, "b2xk": 0, "cHJvZA==": 1, "current-context: demo": 1, "name: demo\n": 2, "name: prod\n": 2} {
		if got := strings.Count(text, want); got != n {
			t.Errorf("%q is there %d times, want %d:\n%s", want, got, n, text)
		}
	}
	if again, err := cluster.MergeKubeconfig(merged, []byte(ofDemo)); err != nil || string(again) != text {
		t.Errorf("a second merge: %v\n%s", err, again)
	}
	for _, empty := range []string{"", "{apiVersion: v1, kind: Config, clusters: [], contexts: null}"} {
		if got, err := cluster.MergeKubeconfig([]byte(empty), []byte(ofDemo)); err != nil || !strings.Contains(string(got), "name: demo-admin") {
			t.Errorf("into %q: %v\n%s", empty, err, got)
		}
	}
	for _, no := range []string{"kind: Cluster", "[]", "text", "a: b: c"} {
		if got, err := cluster.MergeKubeconfig([]byte(no), []byte(ofDemo)); err == nil {
			t.Errorf("%q was taken for a kubeconfig:\n%s", no, got)
		}
	}
}
