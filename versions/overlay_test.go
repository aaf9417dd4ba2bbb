package versions

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mensylisir/kubexm/manifest"
)

const overlayHead = "apiVersion: kubexm.mensylisir.io/v1alpha1\nkind: Versions\n"

var (
	hexA = strings.Repeat("a", 64)
	hexB = strings.Repeat("b", 64)
)

func overlaid(t *testing.T, body string) *Catalog {
	t.Helper()
	c, problems := loadOver(t, overlayHead+body)
	if problems.Err() != nil {
		t.Fatal(problems)
	}
	return c
}

func resolved(t *testing.T, c *Catalog, edit func(s *manifest.Spec)) *manifest.Lock {
	t.Helper()
	lock, problems := c.Resolve(cluster(edit))
	if problems.Err() != nil {
		t.Fatal(problems)
	}
	return lock
}

func artifact(t *testing.T, lock *manifest.Lock, id string) manifest.Artifact {
	t.Helper()
	i := slices.IndexFunc(lock.Artifacts, func(a manifest.Artifact) bool { return a.ID == id })
	if i < 0 {
		t.Fatalf("no %s in %v", id, names(lock))
	}
	return lock.Artifacts[i]
}

func TestOverlayAddsAVersion(t *testing.T) {
	c := overlaid(t, `
components:
  runc:
    versions:
      v1.9.9: {sha256: {amd64: `+hexA+`, arm64: `+hexB+`}}
`)
	lock := resolved(t, c, func(s *manifest.Spec) { s.Bundle.Platforms = platforms("amd64", "arm64") })
	a := artifact(t, lock, "binary/runc/v1.9.9/linux/arm64")
	if a.SHA256 != hexB || a.Trust != manifest.FromCatalog || a.Address != "https://github.com/opencontainers/runc/releases/download/v1.9.9/runc.arm64" {
		t.Errorf("%+v", a)
	}
}

func TestOverlayReplacesDigests(t *testing.T) {
	tests := []struct {
		name, body, id, sum, address string
		problem                      string // instead of a lock
	}{
		{
			name: "of one architecture", id: "binary/kubelet/v1.32.4/linux/amd64", sum: hexA,
			body:    "components: {kubelet: {versions: {1.32.4: {sha256: {amd64: " + hexA + "}}}}}",
			address: "https://dl.k8s.io/release/v1.32.4/bin/linux/amd64/kubelet",
		},
		{
			name: "the other one stays", id: "binary/kubelet/v1.32.4/linux/arm64", sum: "",
			body: "components: {kube-apiserver: {versions: {v1.32.4: {sha256: {amd64: " + hexA + "}}}}}",
		},
		{
			name: "and the address", id: "binary/kubelet/v1.32.4/linux/arm64", sum: hexB, address: "https://mine.example/arm64/kubelet",
			body: `components: {kubelet: {versions: {v1.32.4: {address: "https://mine.example/{arch}/kubelet", sha256: {amd64: ` + hexA + ", arm64: " + hexB + "}}}}}",
		},
		{
			name:    "a new address voids old digests",
			body:    `components: {crun: {versions: {"1.17": {address: "https://mine.example/{arch}/crun"}}}}`,
			problem: "components.crun.versions.1.17: has an address, but neither sha256 nor digestAddress",
		},
		{
			name:    "a new address voids the published digest",
			body:    `components: {kube-proxy: {versions: {v1.32.4: {address: "https://mine.example/{arch}/kube-proxy"}}}}`,
			problem: "components.kube-proxy.versions.v1.32.4: has an address, but neither sha256 nor digestAddress",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, problems := loadOver(t, overlayHead+tt.body)
			if tt.problem != "" {
				if !strings.Contains(problems.Error(), tt.problem) {
					t.Fatalf("got %v", problems)
				}
				return
			}
			if problems.Err() != nil {
				t.Fatal(problems)
			}
			a := artifact(t, resolved(t, c, func(s *manifest.Spec) {
				s.Kubernetes.Type = "kubexm"
				s.Bundle.Platforms = platforms("amd64", "arm64")
			}), tt.id)
			if tt.sum == "" {
				_, r, _ := load(t).Release(a.Name, a.Version)
				tt.sum, tt.address = r.SHA256[a.Platform.Arch], expand(r.Address, a.Version, a.Platform.Arch)
			}
			if a.SHA256 != tt.sum || a.Address != tt.address || a.Trust != manifest.FromCatalog {
				t.Errorf("%+v", a)
			}
		})
	}
}

func TestOverlayPinsAnImage(t *testing.T) {
	c := overlaid(t, "images: {\"registry.k8s.io/pause:3.10\": \"sha256:"+hexA+"\"}")
	lock := resolved(t, c, func(*manifest.Spec) {})
	pin, err := lock.Image(manifest.Need{Kind: manifest.Image, Name: "pause"})
	if err != nil || pin.Digest != "sha256:"+hexA || pin.Trust != manifest.FromCatalog {
		t.Errorf("%+v, %v", pin, err)
	}
}

func TestOverlayAddsOwnComponents(t *testing.T) {
	c := overlaid(t, `
components:
  site-tool:
    kind: binary
    always: true
    address: https://mine.example/{version}/site-tool-{arch}
    versions:
      v1.0.0: {sha256: {amd64: `+hexA+`}}
  site-page:
    kind: image
    images: [{name: site-page, reference: "mine.example/site/page:v{version}"}]
    versions: {v2.0.0: {}}
`)
	lock := resolved(t, c, func(s *manifest.Spec) { s.Addons = []manifest.Addon{{Name: "site-page"}} })
	if a := artifact(t, lock, "binary/site-tool/v1.0.0/linux/amd64"); a.Address != "https://mine.example/1.0.0/site-tool-amd64" {
		t.Errorf("%+v", a)
	}
	if _, err := lock.Image(manifest.Need{Kind: manifest.Image, Name: "site-page"}); err != nil {
		t.Error(err)
	}
	if without := resolved(t, c, func(*manifest.Spec) {}); slices.Contains(names(without), "site-page") {
		t.Error("a component that is not required is in the lock")
	}
}

func TestUnresolvedIsNeitherDefaultNorResolved(t *testing.T) {
	c := overlaid(t, "components: {runc: {versions: {v9.0.0: {unresolved: not released yet}}}, "+
		"crun: {unresolved: lost}, docker: {versions: {28.5.2: {unresolved: withdrawn}}}}")
	if v, _ := c.Default("runc", "v1.32.4"); v != "v1.4.3" {
		t.Errorf("the default of runc is %s", v)
	}
	if v, ok := c.Default("crun", "v1.32.4"); ok {
		t.Errorf("the default of crun is %s", v)
	}
	_, problems := c.Resolve(cluster(func(s *manifest.Spec) { s.Runtime.Type, s.Runtime.Version = "docker", "28.5.2" }))
	if want := "spec.runtime.version: docker 28.5.2 cannot be downloaded: withdrawn"; !strings.Contains(problems.Error(), want) {
		t.Errorf("got %v", problems)
	}
}

func TestOverlayProblems(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"empty", "", "error: is empty"},
		{"no yaml", "components: [", "error: did not find expected node content"},
		{"a list", "- a", "1:1: error: is a list, not a mapping; write key: value pairs"},
		{"nothing said", "components: {}", "1:1: error: has no apiVersion or no kind; begin with apiVersion: kubexm.mensylisir.io/v1alpha1 and kind: Versions"},
		{"another kind", "apiVersion: kubexm.mensylisir.io/v1alpha1\nkind: Cluster\n", `2:7: error: kind: "Cluster" is not Versions`},
		{"second document", overlayHead + "---\nkind: Versions\n", "contains a second document"},
		{"unknown field", overlayHead + "component: {}", "3:1: error: component: unknown field; did you mean components"},
		{"unknown field below", overlayHead + "components:\n  runc:\n    versions:\n      v1.9.9: {sha: {}}",
			"6:16: error: components.runc.versions.v1.9.9.sha: unknown field; did you mean sha256"},
		{"twice", overlayHead + "components: {runc: {}, runc: {}}", "3:24: error: components.runc: is set twice"},
		{"wrong shape", overlayHead + "components: {runc: {versions: [v1.9.9]}}", "3:31: error: components.runc.versions: is a list, not a mapping"},
		{"no digest", overlayHead + "components: {runc: {versions: {v1.9.9: {sha256: {amd64: ABC}}}}}",
			`3:57: error: components.runc.versions.v1.9.9.sha256.amd64: "ABC" is not 64 digits in lower-case hex`},
		{"architecture", overlayHead + "components: {runc: {versions: {v1.9.9: {sha256: {x86: " + hexA + "}}}}}", `"x86" is not one of amd64, arm64, any`},
		{"placeholder", overlayHead + "components: {runc: {versions: {v1.9.9: {address: 'https://h/{Version}'}}}}",
			"contains {Version}; the placeholders are {version}, {arch} and {machine}"},
		{"address", overlayHead + "components: {runc: {versions: {v1.9.9: {address: h/runc}}}}", "is not a URL, as in https://host/path"},
		{"member", overlayHead + "components: {etcd: {members: [{path: ../etcd, name: etcd}]}}", `"../etcd" is not a plain path inside the archive`},
		{"range", overlayHead + "components: {runc: {versions: {v1.9.9: {kubernetes: newest}}}}", `"newest" is not a version range`},
		{"image", overlayHead + "images: {pause: sha256:" + hexA + "}", `3:10: error: images.pause: "pause" has no tag`},
		{"short image", overlayHead + "images: {\"redis:8\": sha256:" + hexA + "}", "has no registry or is abbreviated; write docker.io/library/redis:8"},
		{"image digest", overlayHead + "images: {\"registry.k8s.io/pause:3.10\": " + hexA + "}", "is not sha256: and 64 digits in lower-case hex"},
		{"alias", overlayHead + "components: {runc: &r {}, crun: *r}", "is an alias, not a mapping"},
		{"misspelt component", overlayHead + "components: {contanerd: {versions: {v9: {}}}}",
			"components.contanerd: is not a component of the version matrix, and has no kind; did you mean containerd, or set a kind"},
		{"lacks an address", overlayHead + "components: {mine: {kind: binary, versions: {v1: {}}}}", "components.mine.versions.v1: has no address"},
		{"lacks an image", overlayHead + "components: {mine: {kind: image, versions: {v1: {}}}}", "components.mine.versions.v1: has no images"},
		{"one address for two", overlayHead + "components: {mine: {kind: binary, address: 'https://h/x', versions: {v1: {sha256: {amd64: " + hexA + ", arm64: " + hexB + "}}}}}",
			"has one address for several architectures; write {arch} or {machine} into it"},
		{"archive without members", overlayHead + "components: {mine: {kind: binary, archive: tar.gz, address: 'https://h/x', versions: {v1: {sha256: {amd64: " + hexA + "}}}}}",
			"must have members if it is an archive"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, problems := loadOver(t, tt.text)
			if c != nil || !strings.Contains(problems.Error(), tt.want) {
				t.Errorf("want %s\ngot  %v", tt.want, problems)
			}
		})
	}
}

func TestOverlayProblemsAreAllTold(t *testing.T) {
	file := t.TempDir() + "/mine.yaml"
	text := overlayHead + "components:\n  runc: {versions: {v1.9.9: {sha256: {amd64: x}}}}\n  etcd: {archiv: tar.gz}\nimages: {pause: x}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	_, problems := Load(f, strings.NewReader("kind: Versions"))
	if len(problems) != 4 || problems[0].File != file || problems[2].Line != 6 || problems[3].File != "" {
		t.Errorf("got %v", problems)
	}
}

func TestOverlaysLieOverEachOther(t *testing.T) {
	one := "components: {mine: {kind: file, address: 'https://h/{version}', versions: {v1: {sha256: {any: " + hexA + "}}}}}"
	two := "components: {mine: {versions: {v1: {sha256: {any: " + hexB + "}}, v2: {sha256: {any: " + hexA + "}}}}}"
	c, problems := loadOver(t, overlayHead+one, overlayHead+two)
	if problems.Err() != nil {
		t.Fatal(problems)
	}
	_, r, _ := c.Release("mine", "v1")
	if r.SHA256[anyArch] != hexB || r.Address != "https://h/{version}" || len(c.Versions("mine")) != 2 {
		t.Errorf("%+v of %v", r, c.Versions("mine"))
	}
}

// standIn gives every artifact and image a digest of its own, as a loopback
// upstream does, and as pinning would.
func standIn(lock *manifest.Lock) {
	for i := range lock.Artifacts {
		lock.Artifacts[i].SHA256 = fakeDigest(lock.Artifacts[i].ID)
	}
	for i := range lock.Images {
		if lock.Images[i].Digest == "" {
			lock.Images[i].Digest = "sha256:" + fakeDigest(lock.Images[i].ID)
		}
	}
}

func TestOverlayForGoesRound(t *testing.T) {
	own := `
components:
  kubelet: {versions: {v1.32.4: {address: "https://mine.example/{arch}/kubelet", sha256: {amd64: ` + hexA + `, arm64: ` + hexA + `}}}}
  runc: {versions: {v9.9.9: {sha256: {amd64: ` + hexA + `, arm64: ` + hexB + `}}}}
  site-tool:
    kind: binary
    address: https://mine.example/site-tool-{machine}.tgz
    archive: tar.gz
    members: [{path: "site-{arch}/tool", name: tool}]
    always: true
    versions: {v1: {sha256: {amd64: ` + hexA + `, arm64: ` + hexB + `}}}
`
	for name, edit := range configs {
		t.Run(name, func(t *testing.T) { goesRound(t, "", edit) })
		t.Run(name+" over another overlay", func(t *testing.T) { goesRound(t, own, edit) })
	}
}

func goesRound(t *testing.T, own string, edit func(s *manifest.Spec)) {
	c := overlaid(t, own)
	lock := resolved(t, c, edit)
	standIn(lock)
	text, err := overlayFor(load(t), lock)
	if err != nil {
		t.Fatal(err)
	}
	again, err := overlayFor(load(t), lock)
	if err != nil || string(again) != string(text) {
		t.Errorf("not the same bytes twice: %v", err)
	}
	over, problems := loadOver(t, overlayHead+own, string(text))
	if problems.Err() != nil {
		t.Fatalf("%v\n%s", problems, text)
	}
	got := resolved(t, over, edit)
	for i := range lock.Artifacts {
		want := &lock.Artifacts[i]
		if want.Version == fromConfig { // the config's own files are its own matter
			want.SHA256, want.Trust = got.Artifacts[i].SHA256, got.Artifacts[i].Trust
			continue
		}
		want.Trust = manifest.FromCatalog
	}
	for i := range lock.Images {
		lock.Images[i].Trust = manifest.FromCatalog
	}
	if d := cmp.Diff(lock, got); d != "" {
		t.Errorf("(-lock +through its overlay)\n%s\n%s", d, text)
	}
}

// An overlay written from a lock is complete: it contains what the embedded
// matrix does not know.
func TestOverlayForStandsAlone(t *testing.T) {
	c := overlaid(t, "components: {kubernetes: {versions: {v1.99.0: {with: {coredns: v1.14.2, pause: 3.10.2, etcd: v3.6.8, etcd-image: 3.6.8-0, containerd: v2.3.4, crictl: v1.36.0}}}},"+
		strings.Join(mapped([]string{"kubeadm", "kubelet", "kubectl", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy"}, func(n string) string {
			return n + ": {versions: {v1.99.0: {sha256: {amd64: " + fakeDigest(n) + "}}}}"
		}), ", ")+", site-page: {kind: image, versions: {v2: {images: [{name: site-page/one, reference: mine.example/one:2}, {name: site-page/two, reference: mine.example/two:2}]}}}}")
	edit := func(s *manifest.Spec) {
		s.Kubernetes.Version = "v1.99.0"
		s.Addons = []manifest.Addon{{Name: "site-page"}}
	}
	lock := resolved(t, c, edit)
	standIn(lock)
	text, err := OverlayFor(lock)
	if err != nil {
		t.Fatal(err)
	}
	alone, problems := loadOver(t, string(text))
	if problems.Err() != nil {
		t.Fatal(problems)
	}
	if d := cmp.Diff(names(lock), names(resolved(t, alone, edit))); d != "" {
		t.Error(d)
	}
}

func TestOverlayForRefusesOddAddresses(t *testing.T) {
	lock := &manifest.Lock{Artifacts: []manifest.Artifact{
		{Name: "odd", Version: "v1", Kind: manifest.Binary, Platform: platforms("amd64")[0], Address: "https://h/one", SHA256: hexA},
		{Name: "odd", Version: "v1", Kind: manifest.Binary, Platform: platforms("arm64")[0], Address: "https://h/two", SHA256: hexB},
	}}
	if _, err := OverlayFor(lock); err == nil || !strings.Contains(err.Error(), "odd v1: its addresses and paths differ by more than the architecture") {
		t.Errorf("got %v", err)
	}
}
