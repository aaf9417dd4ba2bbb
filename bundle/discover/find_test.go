package discover_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mensylisir/kubexm/bundle/discover"
)

// TestPlacesOfImages: which places in a manifest count as images.
func TestPlacesOfImages(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []string // "reference path"
	}{
		"containers of a pod": {`
kind: Pod
spec:
  initContainers: [{name: a, image: busybox}]
  containers: [{name: b, image: "nginx:1.29"}, {name: c, image: 'localhost:5000/x'}]
  ephemeralContainers: [{image: quay.io/a/b@sha256:` + sum + `}]
  volumes: [{image: {reference: ghcr.io/data/set:v1}}]`, []string{
			"docker.io/library/busybox:latest spec.initContainers[0].image", "docker.io/library/nginx:1.29 spec.containers[0].image",
			"ghcr.io/data/set:v1 spec.volumes[0].image.reference", "localhost:5000/x:latest spec.containers[1].image",
			"quay.io/a/b@sha256:" + sum + " spec.ephemeralContainers[0].image"}},
		"a list of objects": {`{kind: List, items: [{kind: Pod, metadata: {name: x}, spec: {containers: [{image: a/b:1}]}}]}`, []string{"docker.io/a/b:1 items[0].spec.containers[0].image"}},
		"a resource of its own": {`
kind: Cluster
spec:
  imageName: ghcr.io/cnpg/postgresql:16.2
  cephVersion: {image: quay.io/ceph/ceph:v18}
  sidecarImage: docker.io/x/sidecar:2
  runnerImage: ubuntu
  osImage: ubuntu-22.04
  image: logo.png
  machine: {image: ubuntu-22.04}`, []string{"docker.io/x/sidecar:2 spec.sidecarImage", "ghcr.io/cnpg/postgresql:16.2 spec.imageName", "quay.io/ceph/ceph:v18 spec.cephVersion.image"}},
		"pieces": {`
kind: Stack
spec:
  a: {image: {repository: quay.io/a/a, tag: v1, pullPolicy: Always}}
  b: {image: {registry: quay.io, repository: b/b, tag: 1.25}}
  c: {image: {repository: quay.io/c/c, tag: v3, digest: 'sha256:` + sum + `'}}
  d: {image: quay.io/d/d, tag: v4}
  e: {image: 'quay.io/e/e:v5', sha: ` + sum + `}
  f: {repository: 'https://charts.example', version: 1.2.3}
  g: {image: {name: quay.io/g/g, tag: v7}}
  h: {baseImage: quay.io/h/h, version: v8}
  i: {repository: me/i, tag: v9}
  j: {image: {repository: quay.io/j/j}}`, []string{
			"docker.io/me/i:v9 spec.i.repository", "quay.io/a/a:v1 spec.a.image.repository", "quay.io/b/b:1.25 spec.b.image.repository",
			"quay.io/c/c:v3@sha256:" + sum + " spec.c.image.repository", "quay.io/d/d:v4 spec.d.image", "quay.io/e/e:v5@sha256:" + sum + " spec.e.image",
			"quay.io/g/g:v7 spec.g.image.name", "quay.io/h/h:v8 spec.h.baseImage"}},
		"arguments": {`
kind: Deployment
spec:
  args:
    - --prometheus-config-reloader=quay.io/po/reloader:v0.81.0
    - --helper-image=busybox:1.36
    - --image
    - rancher/pause:3.6
    - --images=app=quay.io/a/one:1,quay.io/a/two:2
    - --listen=0.0.0.0:8080
    - --endpoint=otlp.example.com:4317
    - --url=https://example.com/a:1
    - --taint=node.kubernetes.io/not-ready:NoExecute
    - --label=example.com/role:worker
    - --image-pull-progress-deadline=1m:0
    - quay.io/plain/arg:v1
    - /bin/sh:1`, []string{
			"docker.io/library/busybox:1.36 spec.args[1]", "docker.io/rancher/pause:3.6 spec.args[3]", "quay.io/a/one:1 spec.args[4]", "quay.io/a/two:2 spec.args[4]",
			"quay.io/plain/arg:v1 spec.args[11]", "quay.io/po/reloader:v0.81.0 spec.args[0]"}},
		"variables": {`
kind: Deployment
spec:
  env:
    - {name: RELATED_IMAGE_PROXY, value: 'quay.io/a/proxy:v1'}
    - {name: HELPER_IMAGE, value: 'busybox:1.36'}
    - {name: SOME, value: 'ghcr.io/a/some:v2'}
    - {name: ADDRESS, value: 'example.com:80'}
    - {name: IMAGE_PULL_POLICY, value: 'a:b'}
    - {name: FROM, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}`, []string{
			"docker.io/library/busybox:1.36 spec.env[1].value", "ghcr.io/a/some:v2 spec.env[2].value", "quay.io/a/proxy:v1 spec.env[0].value"}},
		"documents in strings": {`
kind: ConfigMap
data:
  RELATED_IMAGE_X: quay.io/x/x:v1
  default-engine-image: longhornio/longhorn-engine:v1.8.1
  helper.yaml: |
    apiVersion: v1
    kind: Pod
    spec: {containers: [{name: h, image: busybox}]}
  inject.tmpl: |
    containers:
    {{ range .x }}
    - image: docker.io/istio/proxyv2:1.25.0
    - image: "{{ .Values.hub }}/pilot:{{ .Values.tag }}"
    {{ end }}
  pod.json: '{"image": "quay.io/j/son:v1"}'
  notes.txt: |
    image of a cat: cat.png`, []string{
			"docker.io/istio/proxyv2:1.25.0 data.inject.tmpl", "docker.io/library/busybox:latest data.helper.yaml: spec.containers[0].image",
			"docker.io/longhornio/longhorn-engine:v1.8.1 data.default-engine-image", "quay.io/j/son:v1 data.pod.json: image", "quay.io/x/x:v1 data.RELATED_IMAGE_X"}},
		"a definition": {`
kind: CustomResourceDefinition
spec:
  versions:
    - schema:
        openAPIV3Schema:
          properties:
            image: {type: string, description: 'as in quay.io/no/one:v1', example: 'quay.io/no/two:v1', default: 'quay.io/yes/one:v1'}
            pods: {default: {image: 'quay.io/yes/two:v2'}}
            name: {default: 'quay.io/no/three:v1'}`, []string{
			"quay.io/yes/one:v1 spec.versions[0].schema.openAPIV3Schema.properties.image.default",
			"quay.io/yes/two:v2 spec.versions[0].schema.openAPIV3Schema.properties.pods.default.image"}},
		"annotations": {`
kind: Deployment
metadata:
  annotations:
    sidecar.istio.io/proxyImage: docker.io/istio/proxyv2:1.25.0
    container.apparmor.security.beta.kubernetes.io/image: runtime/default
    kubectl.kubernetes.io/last-applied-configuration: |
      {"spec": {"image": "quay.io/an/old:v1"}}`, []string{"docker.io/istio/proxyv2:1.25.0 metadata.annotations.sidecar.istio.io/proxyImage"}},
		"anchors": {"kind: Pod\nspec:\n  containers:\n    - &a {image: 'x/y:1'}\n    - *a\n    - {<<: *a, name: z}\n", []string{
			"docker.io/x/y:1 spec.containers[0].image", "docker.io/x/y:1 spec.containers[1].image", "docker.io/x/y:1 spec.containers[2].<<.image"}},
		"a key that stands twice":            {"kind: Pod\nspec: {containers: [{image: 'x/y:1', name: a, name: b}]}\n", []string{"docker.io/x/y:1 spec.containers[0].image"}},
		"a comment at the end of a document": {"kind: Pod\n---# more\nkind: Pod\nspec: {containers: [{image: 'x/y:1'}]}\n--- {image: 'x/z:1'}\n", []string{"docker.io/x/y:1 spec.containers[0].image", "docker.io/x/z:1 image"}},
		"nothing":                            {"---\n---\nnull\n---\n# a comment\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			all, err := discover.In([]byte(c.text), discover.Place{})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, im := range all {
				for _, p := range im.Places {
					got = append(got, im.Reference+" "+p.Path)
				}
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
		})
	}
}

const sum = "3e1f6a4c9a4f6f9b2d8e5a7c0b1d3f5e7a9c1b3d5f7e9a1c3b5d7f9e1a3c5b7d"

// TestBounds: what is too large or never ends is refused, and soon.
func TestBounds(t *testing.T) {
	laughs := "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
	for i := 1; i < 10; i++ {
		p, n := string(rune('0'+i-1)), string(rune('0'+i))
		laughs += "a" + n + ": &a" + n + " [" + strings.TrimSuffix(strings.Repeat("*a"+p+", ", 10), ", ") + "]\n"
	}
	for name, text := range map[string]string{
		"a billion laughs": laughs,
		"too deep":         strings.Repeat("{a: ", 300) + "1" + strings.Repeat("}", 300),
		"no yaml":          "a: [",
	} {
		if _, err := discover.In([]byte(text), discover.Place{}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// FuzzIn: whatever comes, a reference that is found is one, and found again.
func FuzzIn(f *testing.F) {
	for _, s := range []string{
		"kind: Pod\nspec: {containers: [{image: nginx}]}", "kind: ConfigMap\ndata: {a: 'image: x:1\n'}", "kind: CustomResourceDefinition\nproperties: {image: {default: a/b:1}}",
		"kind: List\nitems: [{kind: Pod, image: 'quay.io/a:1'}]", "a: &a [*a]", "args: [--image, x:1, --b=quay.io/a/b:1]", "env: [{name: X_IMAGE, value: 'x:1'}]",
		"image: {repository: a, tag: b, digest: 'sha256:" + sum + "'}",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		all, err := discover.In(text, discover.Place{Template: "x"})
		if err != nil {
			return
		}
		for _, im := range all {
			again, err := discover.In([]byte("spec: {containers: [{image: '"+im.Reference+"'}]}"), discover.Place{})
			if err != nil || len(again) != 1 || again[0].Reference != im.Reference {
				t.Errorf("%q is found as %v, %v", im.Reference, again, err)
			}
			if len(im.Places) == 0 {
				t.Errorf("%s stands nowhere", im.Reference)
			}
		}
	})
}

// TestDefinitions: what charts ask for by .Capabilities.APIVersions.
func TestDefinitions(t *testing.T) {
	got := discover.Definitions([]byte(`
kind: CustomResourceDefinition
spec: {group: a.example, names: {kind: Thing}, versions: [{name: v1}, {name: v1beta1}]}
---# the old form
kind: CustomResourceDefinition
spec: {group: b.example, names: {kind: Old}, version: v1}
---
kind: Pod
spec: [1]
---
a: [
`))
	if d := cmp.Diff([]string{"a.example/v1", "a.example/v1/Thing", "a.example/v1beta1", "a.example/v1beta1/Thing", "b.example/v1", "b.example/v1/Old"}, got); d != "" {
		t.Error(d)
	}
}
