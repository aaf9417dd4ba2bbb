package manifest

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRewrite(t *testing.T) {
	mirrors := Sources{Replace: []Replacement{
		{From: "docker.io", To: "mirror.example/docker"},
		{From: "docker.io/calico", To: "https://calico.example:8443/"},
		{From: "github.com/a/", To: "http://127.0.0.1:8080/gh", PlainHTTP: true},
		{From: "quay.io:443", To: "q.example", PlainHTTP: true},
		{From: "flat.example", To: "f.example/all", Flatten: true},
	}}
	cn := Sources{Zone: "cn", Replace: []Replacement{{From: "registry.k8s.io/etcd", To: "e.example"}}}
	for _, x := range []struct {
		s             Sources
		address, want string
		plain         bool
	}{
		{Sources{}, "docker.io/library/nginx:1", "docker.io/library/nginx:1", false},
		{mirrors, "docker.io/library/nginx:1.29", "mirror.example/docker/library/nginx:1.29", false},
		{mirrors, "docker.io/library/nginx@sha256:aa", "mirror.example/docker/library/nginx@sha256:aa", false},
		{mirrors, "docker.io/calico/node:v3", "calico.example:8443/node:v3", false},
		{mirrors, "docker.io/calicox/node:v3", "mirror.example/docker/calicox/node:v3", false},
		{mirrors, "docker.iox/a:1", "docker.iox/a:1", false},
		{mirrors, "https://github.com/a/b/x.tgz?y=1#z", "http://127.0.0.1:8080/gh/b/x.tgz?y=1#z", true},
		{mirrors, "https://github.com/ab/x.tgz", "https://github.com/ab/x.tgz", false},
		{mirrors, "https://docker.io/x:y", "https://mirror.example/docker/x:y", false},
		{mirrors, "quay.io:443/a/b:1", "q.example/a/b:1", true},
		{mirrors, "quay.io/a/b:1", "quay.io/a/b:1", false},
		{mirrors, "flat.example/a/b/c:1@sha256:aa", "f.example/all/c:1@sha256:aa", false},
		{mirrors, "https://flat.example/a/b/c", "https://f.example/all/a/b/c", false},
		{cn, "registry.k8s.io/coredns/coredns:v1", "m.daocloud.io/registry.k8s.io/coredns/coredns:v1", false},
		{cn, "k8s.gcr.io/pause:3.6", "m.daocloud.io/k8s.gcr.io/pause:3.6", false},
		{cn, "docker.io/library/nginx@sha256:aa", "m.daocloud.io/docker.io/library/nginx@sha256:aa", false},
		{cn, "registry.k8s.io/etcd:3", "e.example:3", false}, // the config's own entry comes first
		{cn, "https://github.com/a/b/x.tgz?y=1", "https://files.m.daocloud.io/github.com/a/b/x.tgz?y=1", false},
		{cn, "https://download.docker.com/linux/static/x.tgz", "https://mirrors.aliyun.com/docker-ce/linux/static/x.tgz", false},
		{cn, "https://quay.io/x", "https://quay.io/x", false}, // a mirror of images has no files
		{cn, "github.com/a/b:1", "github.com/a/b:1", false},
		{cn, "mine.example/a:1", "mine.example/a:1", false},
		{cn, "docker.io/kubeovn/kube-ovn:v1", "m.daocloud.io/docker.io/kubeovn/kube-ovn:v1", false},
		{cn, "docker.io/kubeovn/vpc-nat-gateway:v1", "docker.io/kubeovn/vpc-nat-gateway:v1", false},
		{Sources{Zone: "cn", Replace: []Replacement{{From: "docker.io", To: "m.example"}}}, "docker.io/kubeovn/vpc-nat-gateway:v1", "m.example/kubeovn/vpc-nat-gateway:v1", false},
		{Sources{Zone: "cn", Replace: []Replacement{{From: "quay.io/a", To: "quay.io/a"}}}, "quay.io/a/b:1", "quay.io/a/b:1", false}, // the way back to upstream
	} {
		got, plain := x.s.Rewrite(x.address)
		if got != x.want || plain != x.plain {
			t.Errorf("%s becomes %s, plain %v; want %s, %v", x.address, got, plain, x.want, x.plain)
		}
	}
}

// TestDirect: only what a zone knows to have no mirror is direct, unless the config
// names one.
func TestDirect(t *testing.T) {
	const image = "docker.io/kubeovn/vpc-nat-gateway"
	for _, x := range []struct {
		s             Sources
		address, from string
	}{
		{Sources{}, image + ":v1", ""},
		{Sources{Zone: "cn"}, image + ":v1@sha256:aa", image},
		{Sources{Zone: "cn"}, image + "s:v1", ""},
		{Sources{Zone: "cn"}, "docker.io/library/nginx:1", ""},
		{Sources{Zone: "cn"}, "mine.example/a:1", ""},
		{Sources{Zone: "cn", Replace: []Replacement{{From: "docker.io", To: "m.example"}}}, image + ":v1", ""},
		{Sources{Zone: "cn", Replace: []Replacement{{From: image, To: image}}}, image + ":v1", ""}, // listed in replace
	} {
		from, why := x.s.Direct(x.address)
		if from != x.from || (why == "") != (from == "") {
			t.Errorf("%+v: %s: direct from %q because %q, want %q", x.s, x.address, from, why, x.from)
		}
	}
}

func TestOver(t *testing.T) {
	base := Sources{Zone: "cn", CAFile: "base.pem", Replace: []Replacement{{From: "a.example", To: "1.example"}, {From: "b.example/", To: "2.example"}}}
	over := Sources{DockerConfig: "d.json", CAFile: "over.pem", Replace: []Replacement{{From: "b.example", To: "3.example"}}}
	want := Sources{Zone: "cn", CAFile: "over.pem", DockerConfig: "d.json", Replace: []Replacement{{From: "b.example", To: "3.example"}, {From: "a.example", To: "1.example"}}}
	before := slices.Clone(base.Replace)
	if diff := cmp.Diff(want, over.MergeOver(base)); diff != "" {
		t.Errorf("laid over (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before, base.Replace); diff != "" {
		t.Errorf("the base was changed:\n%s", diff)
	}
	if diff := cmp.Diff(base.Replace, Sources{}.MergeOver(base).Replace); diff != "" {
		t.Errorf("nothing laid over (-want +got):\n%s", diff)
	}
	if got := (Sources{Zone: "cn"}).MergeOver(Sources{}).Zone; got != "cn" {
		t.Errorf("zone %q", got)
	}
}

func TestExpandRange(t *testing.T) {
	for in, want := range map[string]string{
		"node1":           "node1",
		"node[5:6]":       "node5 node6",
		"node[08:10]":     "node08 node09 node10",
		"node[8:10].site": "node8.site node9.site node10.site",
		"[1:2]":           "1 2",
		"n[3:3]":          "n3",
		"n[00:01]":        "n00 n01",
		"n[0:1]":          "n0 n1",
	} {
		got, err := ExpandRange(in)
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%s is %v, %v; want %s", in, got, err, want)
		}
	}
	for in, want := range map[string]string{
		"node[6:5]": "greater than the last", "node[5-6]": "not a range", "node[5:6": "not a range", "node5:6]": "not a range", "n[1:2][3:4]": "not a range",
		"n[a:b]": "not a range", "n[1:99999]": "more than 10000", "n[1:99999999999999999999]": "too long", "n[]": "not a range", "n[-1:2]": "not a range",
	} {
		if got, err := ExpandRange(in); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s is %v, %v; want an error with %q", in, got, err, want)
		}
	}
	if got, err := ExpandRange("n[0:9999]"); err != nil || len(got) != maxRange {
		t.Errorf("the largest range: %d names, %v", len(got), err)
	}
}

func TestHostsWith(t *testing.T) {
	c := mustDecode(t, "\n  kubernetes: {version: v1.34.10}\n  hosts: [{name: a1, address: 192.0.2.1}, {name: a2, address: 192.0.2.2, arch: arm64}, {name: b, address: 192.0.2.3}]\n  roleGroups: {etcd: [b], master: [b], worker: ['a[1:2]', a1]}\n")
	var got []string
	for _, h := range c.HostsWith(RoleWorker) {
		got = append(got, h.Name)
	}
	if diff := cmp.Diff([]string{"a1", "a2"}, got); diff != "" {
		t.Error(diff)
	}
	if got := c.HostsWith("none"); got != nil {
		t.Errorf("hosts of no role: %v", got)
	}
	var ps []string
	for _, p := range c.BundlePlatforms() {
		ps = append(ps, p.String())
	}
	if diff := cmp.Diff([]string{"linux/amd64", "linux/arm64"}, ps); diff != "" {
		t.Error(diff)
	}
	if got := mustDecode(t, "\n  kubernetes: {version: v1.34.10}\n").BundlePlatforms(); len(got) != 1 || got[0].Arch != "amd64" {
		t.Errorf("platforms without hosts: %v", got)
	}
}

// TestHasIsNames: a host is of a role where the role's names have it, and only there.
func TestHasIsNames(t *testing.T) {
	entries := []string{"a", "a[1:3]", "a[01:12]b", "n[9:11]", "[5:7]", "x1[0:2]2", "bad[3:1]", "bad[", "", "n[1:99999]"}
	names := []string{"", "a", "a0", "a1", "a3", "a4", "a01", "a01b", "a1b", "a12b", "a13b", "n9", "n09", "n11", "n+9", "5", "07", "x102", "x112", "x12", "bad3", "bad[", "n5", "[5:7]"}
	for _, e := range entries {
		r := RoleGroups{Worker: []string{e}}
		for _, n := range names {
			if got, want := r.Has(RoleWorker, n), slices.Contains(r.Names(RoleWorker), n); got != want {
				t.Errorf("%q has %q: %t, want %t", e, n, got, want)
			}
		}
	}
}
