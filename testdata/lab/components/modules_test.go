package components

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestAModuleHasTheSettingsThatUpstreamBuildsWith: Go heeds those of the main
// module alone, and here that is the lab's.
func TestAModuleHasTheSettingsThatUpstreamBuildsWith(t *testing.T) {
	c := Component{Name: "tool", Version: "v1.32.2", Module: "example.org/tool", Programs: map[string]string{"tool": "example.org/tool/cmd/tool"}}
	got, err := newModule(c, []byte(`module example.org/tool

go 1.23.0

godebug default=go1.23

require (
	example.org/tool/api v0.0.0
	k8s.io/api v0.0.0
)

replace (
	example.org/forked v1.0.0 => example.org/fork v1.0.1
	example.org/tool/api => ./api
	k8s.io/api => ./staging/src/k8s.io/api
)
`))
	if err != nil {
		t.Fatal(err)
	}
	want := `module github.com/mensylisir/kubexm/testdata/lab/components/tool

go 1.26

godebug default=go1.23

replace example.org/forked v1.0.0 => example.org/fork v1.0.1

replace example.org/tool/api => example.org/tool/api v1.32.2

replace k8s.io/api => k8s.io/api v0.32.2

require example.org/tool v1.32.2

tool example.org/tool/cmd/tool
`
	if d := cmp.Diff(want, string(got)); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}
