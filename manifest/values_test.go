package manifest

import (
	"strings"
	"testing"
)

// TestAProblemInValuesSaysWhere: the line of the value, or of what is written
// around it, and its path as the document spells it.
func TestAProblemInValuesSaysWhere(t *testing.T) {
	c, problems := Decode(strings.NewReader(`apiVersion: kubexm.mensylisir.io/v1alpha1
kind: Cluster
metadata: {name: demo}
spec:
  kubernetes: {version: v1.33.1}
  addons:
    - metrics-server
    - name: web
      url: https://charts.example/web
      values:
        shared: &shared {tag: 1}
        ports:
          - number: 80
          - {number: high}
        store: *shared
        "a.b": 1
`))
	if problems.Err() != nil {
		t.Fatal(problems)
	}
	for _, x := range []struct {
		addon int
		path  string
		want  string
	}{
		{1, "ports/1/number", "14:14: error: spec.addons[1].values.ports[1].number: is wrong; mend it"},
		{1, "ports/1/nothing/here", "14:13: error: spec.addons[1].values.ports[1].nothing.here: is wrong; mend it"},
		{1, "ports/7", "12:9: error: spec.addons[1].values.ports.7: is wrong; mend it"},
		{1, "store/tag", "11:26: error: spec.addons[1].values.store.tag: is wrong; mend it"},
		{1, "a.b", `16:9: error: spec.addons[1].values["a.b"]: is wrong; mend it`},
		{1, "colour", "11:9: error: spec.addons[1].values.colour: is wrong; mend it"},
		{0, "name", "7:7: error: spec.addons[0].values.name: is wrong; mend it"},
	} {
		if got := c.ValuesProblem(x.addon, strings.Split(x.path, "/"), "is wrong", "mend it").String(); strings.TrimSpace(got) != x.want {
			t.Errorf("%s: %s\nwant %s", x.path, got, x.want)
		}
	}
	bare := &Cluster{Spec: Spec{Addons: []Addon{{Name: "x"}}}}
	if got := bare.ValuesProblem(0, nil, "is wrong", "").String(); got != "error: spec.addons[0].values: is wrong" {
		t.Error(got)
	}
}
