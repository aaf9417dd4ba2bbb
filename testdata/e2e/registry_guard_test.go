package e2e

import (
	"strings"
	"testing"
)

// Questions to the site's registry with the login that lies on every node. ask prints
// the status of the answer.
const asNode = `login=$(grep -ohE 'Basic [A-Za-z0-9+/=]+' /etc/containerd/certs.d/_default/hosts.toml | head -n 1)
ask() { curl -s --cacert /etc/containerd/certs.d/kubexm-registry.crt -H "Authorization: $login" -o /dev/null -w '%{http_code}\n' --max-time 10 "$@" || true; }
site=https://dockerhub.kubexm.local/v2
`

// asPusher is the same for root on the registry's host, with the login that pushes.
const asPusher = `login="Basic $(printf 'kubexm-push:%s' "$(cat /etc/kubexm/registry/kubexm-push.password)" | base64 -w 0)"
ask() { curl -s --cacert /etc/kubexm/registry/ca.crt --resolve dockerhub.kubexm.local:5001:127.0.0.1 -H "Authorization: $login" -o /dev/null -w '%{http_code}\n' --max-time 10 "$@"; }
push=https://dockerhub.kubexm.local:5001/v2
`

// emptyIndex is an image of nobody's.
const emptyIndex = `{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[]}`

// registryIsGuarded has root on a worker try to write to the registry that all nodes
// pull from, and a tag changed by somebody who may push: the next install names it,
// and puts the bundle's image back, in the registry and on a node.
func (s *labSite) registryIsGuarded(t testing.TB, config string) {
	t.Helper()
	const host, node = "h1", "h5"
	ref := s.on(t, node, "ctr -n k8s.io images list -q | grep '^registry.k8s.io/pause:' | head -n 1")
	_, tag, _ := strings.Cut(ref, ":")
	digest := s.imageDigest(t, node, ref)

	got := s.on(t, node, asNode+`ask $site/
ask -X POST $site/registry.k8s.io/pause/blobs/uploads/
ask -X POST "$site/registry.k8s.io/pause/blobs/uploads/?mount=`+digest+`&from=registry.k8s.io/kube-proxy"
ask -X PUT -H 'Content-Type: application/vnd.oci.image.index.v1+json' --data '`+emptyIndex+`' $site/registry.k8s.io/pause/manifests/`+tag+`
ask -X DELETE $site/registry.k8s.io/pause/manifests/`+tag+`
ask -X DELETE $site/registry.k8s.io/pause/manifests/`+digest+`
ask https://dockerhub.kubexm.local:5001/v2/`)
	if want := "200 405 405 405 405 405 000"; strings.Join(strings.Fields(got), " ") != want {
		t.Errorf("a node that writes is answered %s, and not %s", strings.Join(strings.Fields(got), " "), want)
	}
	login := s.on(t, node, asNode+`echo "$login"`)
	if got := s.on(t, host, asPusher+"login='"+login+"'\nask $push/"); got != "401" {
		t.Errorf("the login of nodes is answered %s where pushes are taken", got)
	}
	if got := s.on(t, host, "ps -o user:32= -C registry | sort | uniq -c | tr -s ' '"); strings.TrimSpace(got) != "2 kubexm-registry" {
		t.Errorf("the registry runs as %q", got)
	}

	if got := s.on(t, host, asPusher+"ask -X PUT -H 'Content-Type: application/vnd.oci.image.index.v1+json' --data '"+emptyIndex+"' $push/registry.k8s.io/pause/manifests/"+tag); got != "201" {
		t.Fatalf("a push is answered %s", got)
	}
	other := s.on(t, node, "ctr -n k8s.io images list -q | grep '^registry.k8s.io/kube-proxy:' | head -n 1")
	s.on(t, node, "ctr -n k8s.io images tag --force "+other+" "+ref+" && ctr -n k8s.io images label "+ref+" io.cri-containerd.pinned=pinned")
	said(t, s.install(t, config), 0, "the registry has another image under this tag", ref, "create of cluster site: done")
	if got := s.imageDigest(t, node, ref); got != digest {
		t.Errorf("%s has %s as %s, and not %s", node, ref, got, digest)
	}
	said(t, s.install(t, config), 0, "0 steps ran")
}

// imageDigest is what a name stands for on a node.
func (s *labSite) imageDigest(t testing.TB, node, ref string) string {
	t.Helper()
	return s.on(t, node, "ctr -n k8s.io images list name=="+ref+" | awk 'NR == 2 {print $3}'")
}
