package installer

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/manifest"
)

// TestTheLastLeadIsAskedFirst: as far as this machine knows it, and while it is a master
// of the config.
func TestTheLastLeadIsAskedFirst(t *testing.T) {
	const config = `apiVersion: kubexm.mensylisir.io/v1alpha1
kind: Cluster
metadata: {name: demo}
spec:
  ssh: {user: root, password: "${env:SSH_PASSWORD}"}
  hosts: [{name: a, address: 192.0.2.1}, {name: b, address: 192.0.2.2}, {name: c, address: 192.0.2.3}]
  roleGroups: {master: [a, b, c], worker: [a]}
  kubernetes: {version: v1.34.10}
  etcd: {type: kubeadm}
  network: {plugin: flannel}
`
	c, problems := manifest.Decode(strings.NewReader(config))
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	for lead, want := range map[string][]string{"": {"a", "b", "c"}, "a": {"a", "b", "c"}, "b": {"b", "a", "c"}, "c": {"c", "a", "b"}, "gone": {"a", "b", "c"}} {
		s := &Session{Workdir: Workdir{Dir: t.TempDir()}}
		if lead != "" {
			err := errors.Join(os.MkdirAll(s.Workdir.Applied(""), 0o700), os.WriteFile(s.Workdir.Applied("config.yaml"), []byte(config), 0o600),
				os.WriteFile(s.Workdir.Applied("applied.json"), []byte(`{"lead": "`+lead+`"}`), 0o600))
			if err != nil {
				t.Fatal(err)
			}
		}
		masters, err := s.lastLeadFirst(c)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, m := range masters {
			got = append(got, m.Name)
		}
		if !slices.Equal(got, want) {
			t.Errorf("after lead %q: %q, want %q", lead, got, want)
		}
	}
}
