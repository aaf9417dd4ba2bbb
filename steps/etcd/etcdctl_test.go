package etcd

import (
	"slices"
	"strconv"
	"testing"
)

// list is what etcdctl 3.5 prints; its numbers are more than a float holds.
const list = `{"header":{"cluster_id":17154286426023150272,"member_id":15323391270157805272,"raft_term":2},"members":[` +
	`{"ID":9601333946108405331,"peerURLs":["https://10.99.2.13:2380"],"isLearner":true},` +
	`{"ID":15323391270157805272,"name":"h1","peerURLs":["https://10.99.2.11:2380"],"clientURLs":["https://10.99.2.11:2379"]}]}
`

func TestParseMembers(t *testing.T) {
	got, err := parseMembers([]byte(list))
	if err != nil || len(got) != 2 {
		t.Fatalf("%+v, %v", got, err)
	}
	if id := strconv.FormatUint(got[0].ID, 16); id != "853eca5a9bb0e653" || got[0].Name != "" || !slices.Equal(got[0].PeerURLs, []string{"https://10.99.2.13:2380"}) {
		t.Errorf("%s %+v", id, got[0])
	}
	if got[1].Name != "h1" {
		t.Errorf("%+v", got[1])
	}
	for _, bad := range []string{"", "{}", `{"members":[]}`, `{"members":[{"ID":-1}]}`, "853eca5a9bb0e653, started, h3"} {
		if got, err := parseMembers([]byte(bad)); err == nil {
			t.Errorf("%q: %+v", bad, got)
		}
	}
}

func FuzzParseMembers(f *testing.F) {
	for _, s := range []string{list, "{}", `{"members":[{"ID":1}]}`, `{"members":[{"ID":1e99}]}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if got, err := parseMembers(text); err == nil && len(got) == 0 {
			t.Error("nobody, and no error")
		}
	})
}

// TestInner: the text is what crictl 1.32 prints.
func TestInner(t *testing.T) {
	for text, want := range map[string]string{
		`time="2026-11-25T05:00:19Z" level=fatal msg="execing command in container synchronously: command 'etcdctl endpoint health' exited with 1: https://192.0.2.1:2379 is unhealthy: deadline\nError: unhealthy cluster\n"` + "\n": "https://192.0.2.1:2379 is unhealthy: deadline\nError: unhealthy cluster\n",
		`time="2026-11-25T05:00:19Z" level=fatal msg="rpc error: no such container"`: `time="2026-11-25T05:00:19Z" level=fatal msg="rpc error: no such container"`,
		`time="2026-11-25T05:00:19Z" level=fatal msg="cut o`:                         `time="2026-11-25T05:00:19Z" level=fatal msg="cut o`,
		"Error: etcdserver: member not found":                                        "Error: etcdserver: member not found",
	} {
		if got := inner(text); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
