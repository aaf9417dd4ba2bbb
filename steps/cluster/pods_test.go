package cluster

import (
	"math"
	"testing"
)

func TestQuantity(t *testing.T) {
	for text, want := range map[string]float64{"": 0, "2": 2, "100m": 0.1, "1.5": 1.5, "1Gi": 1 << 30, "64Mi": 64 << 20, "3k": 3000, "1e3": 1000, "2E": 2e18, "12E2": 1200, "<no value>": 0, "x": 0, "5u": 5e-6} {
		if got := quantity(text); math.Abs(got-want) > want*1e-9 {
			t.Errorf("%q is %g, want %g", text, got, want)
		}
	}
}

func TestRequestsOfAPod(t *testing.T) {
	for name, row := range map[string]struct {
		containers, inits string
		want              resources
	}{
		"none":            {"", "", resources{pods: 1}},
		"containers":      {"100m/64Mi /64Mi ", "", resources{cpu: 0.1, memory: 128 << 20, pods: 1}},
		"a larger init":   {"1/64Mi ", "/2/32Mi /3/ ", resources{cpu: 3, memory: 64 << 20, pods: 1}},
		"a sidecar":       {"1/ ", "Always/500m/1Mi / ", resources{cpu: 1.5, memory: 1 << 20, pods: 1}},
		"no requests set": {"", "/ Always/ ", resources{pods: 1}},
	} {
		if got := podRequests(row.containers, row.inits); got != row.want {
			t.Errorf("%s: %+v, want %+v", name, got, row.want)
		}
	}
}

func TestSelectors(t *testing.T) {
	labels := map[string]string{"app": "web", "tier": "front"}
	all := map[string]*selector{
		"missing": nil, "empty": {}, "same": {MatchLabels: map[string]string{"app": "web"}}, "other": {MatchLabels: map[string]string{"app": "db"}},
		"absent": {MatchLabels: map[string]string{"x": ""}},
	}
	for name, e := range map[string]struct {
		key, operator string
		values        []string
	}{
		"in": {"app", "In", []string{"web", "db"}}, "not in": {"app", "NotIn", []string{"web"}}, "not in, absent": {"x", "NotIn", []string{""}},
		"exists": {"tier", "Exists", nil}, "does not exist": {"tier", "DoesNotExist", nil}, "in, absent": {"x", "In", []string{""}}, "unknown": {"app", "Gt", []string{"1"}},
	} {
		s := &selector{}
		s.MatchExpressions = append(s.MatchExpressions, struct {
			Key      string   `json:"key"`
			Operator string   `json:"operator"`
			Values   []string `json:"values"`
		}{e.key, e.operator, e.values})
		all[name] = s
	}
	want := map[string]bool{"empty": true, "same": true, "in": true, "not in, absent": true, "exists": true}
	for name, s := range all {
		if s.matches(labels) != want[name] {
			t.Errorf("%s: %t", name, !want[name])
		}
	}
}

func TestServerError(t *testing.T) {
	for text, want := range map[string][2]string{
		"Error from server (TooManyRequests): Cannot evict pod.\n": {"TooManyRequests", "Cannot evict pod."},
		"Error from server: etcdserver: request timed out\n":       {"Unknown", "etcdserver: request timed out"},
		"The connection to the server was refused\n":               {"", ""},
	} {
		if reason, said := serverError(text); reason != want[0] || said != want[1] {
			t.Errorf("%q: %q, %q", text, reason, said)
		}
	}
}

// FuzzRows: whatever kubectl prints is parsed or refused.
func FuzzRows(f *testing.F) {
	f.Add("default\tweb-0\tnode1\tRunning\tStatefulSet web\t\t\t\temptyDir name \tapp=web \t100m/64Mi \tAlways/1/ ")
	f.Add("kube-system\tetcd-m1\tm1\tRunning\tNode m1\tmirror\t2026-01-01T00:00:00Z\t30\t\t\t\t")
	f.Add("node1\ttrue\tTrue\tNoSchedule \t4/8Gi/110\tschedulable")
	f.Add("No resources found")
	f.Fuzz(func(t *testing.T, line string) {
		if p, err := parsePod(line); err == nil && (p.namespace == "" || p.name == "") {
			t.Errorf("%+v", p)
		}
		if n, err := parseRoom(line); err == nil && n.name == "" {
			t.Errorf("%+v", n)
		}
		if _, said := serverError(line); len(said) > len(line) {
			t.Errorf("%q", said)
		}
		_ = refusalOf(pod{namespace: "default", name: "web-0"}, line)
	})
}
