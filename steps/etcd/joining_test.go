package etcd

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mensylisir/kubexm/steps/steptest"
)

// TestInitialOf: a member joins with the members that etcd has, in the order of the config.
func TestInitialOf(t *testing.T) {
	m := member{cluster: steptest.Cluster(t, threeMembers)}
	at := func(name, host string) Member {
		return Member{ID: 255, Name: name, PeerURLs: []string{"https://192.0.2." + host + ":2380"}}
	}
	for want, all := range map[string][]Member{
		initialCluster(m.cluster):                                {at("e3", "33"), at("", "32"), at("e1", "31")},
		"e1=https://192.0.2.31:2380,e3=https://192.0.2.33:2380":  {at("e3", "33"), at("another", "31")},
		"e2=https://192.0.2.32:2380,ff=https://192.0.2.99:2380":  {at("", "99"), at("", "32")},
		"e2=https://192.0.2.32:2380,old=https://192.0.2.98:2380": {at("old", "98"), at("e2", "32")},
	} {
		if d := cmp.Diff(want, m.initialOf(all)); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
	}
}

// TestParseAlarms reads etcdctl's lines, and skips what crictl prints around them.
func TestParseAlarms(t *testing.T) {
	const text = "memberID:10501334649042878790 alarm:NOSPACE \nmemberID:10501334649042878790 alarm:NOSPACE \nmemberID:1 alarm:CORRUPT \n\n{\"level\":\"warn\"}\nmemberID:99999999999999999999 alarm:NOSPACE\n"
	want := []Alarm{{Member: 10501334649042878790, Kind: "NOSPACE"}, {Member: 1, Kind: "CORRUPT"}}
	if d := cmp.Diff(want, parseAlarms([]byte(text))); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if got := parseAlarms(nil); len(got) > 0 {
		t.Errorf("%v", got)
	}
}

// FuzzParseAlarms: whatever etcdctl prints, an alarm has a kind.
func FuzzParseAlarms(f *testing.F) {
	for _, s := range []string{"memberID:1 alarm:NOSPACE ", "", "memberID: alarm:", "memberID:1 alarm:NONE"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, a := range parseAlarms(text) {
			if a.Kind == "" {
				t.Errorf("%q: %+v", text, a)
			}
		}
	})
}
