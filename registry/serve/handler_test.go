package serve

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/mensylisir/kubexm/bundle"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/registry"
)

func pin(t *testing.T, b *bundle.Bundle, ref string) manifest.ImagePin {
	t.Helper()
	i := slices.IndexFunc(b.Lock.Images, func(im manifest.ImagePin) bool { return im.Reference == ref })
	if i < 0 {
		t.Fatalf("no %s", ref)
	}
	return b.Lock.Images[i]
}

// layer gives the digest of the large layer, which every image has.
func layer() string { return digest.FromBytes(large).String() }

func TestPaths(t *testing.T) {
	s, b := up(t, Options{})
	busybox := pin(t, b, "docker.io/library/busybox:1.36")
	for name, c := range map[string]struct {
		path   string
		status int
		says   string // part of the body
	}{
		"the API":                    {"/v2/", 200, "{}"},
		"the API without a slash":    {"/v2", 200, "{}"},
		"a tag":                      {"/v2/docker.io/library/busybox/manifests/1.36", 200, `"manifests"`},
		"a path alone":               {"/v2/library/busybox/manifests/1.36", 200, `"manifests"`},
		"a digest":                   {"/v2/library/busybox/manifests/" + busybox.Digest, 200, `"manifests"`},
		"a platform":                 {"/v2/library/busybox/manifests/" + busybox.Platforms[0].Digest, 200, `"layers"`},
		"a port in a name":           {"/v2/localhost-5000/own/thing/manifests/2", 200, `"manifests"`},
		"a layer":                    {"/v2/pause/blobs/" + layer(), 200, "0123456789abcdef"},
		"a manifest as a blob":       {"/v2/pause/blobs/" + pin(t, b, "registry.k8s.io/pause:3.10").Digest, 200, `"manifests"`},
		"one of two":                 {"/v2/team/tool/manifests/v1", 404, "did you mean ghcr.io/team/tool or quay.io/team/tool?"},
		"one of two, said which":     {"/v2/team/tool/manifests/v1?ns=quay.io", 200, `"manifests"`},
		"another registry's":         {"/v2/library/busybox/manifests/1.36?ns=quay.io", 404, "NAME_UNKNOWN"},
		"its own registry's":         {"/v2/library/busybox/manifests/1.36?ns=docker.io", 200, `"manifests"`},
		"an absent platform":         {"/v2/library/busybox/manifests/" + digest.FromString("docker.io/library/busybox:1.36s390x").String(), 404, "does not contain linux/s390x of docker.io/library/busybox:1.36"},
		"no such tag":                {"/v2/library/busybox/manifests/2", 404, "MANIFEST_UNKNOWN"},
		"no such digest":             {"/v2/library/busybox/manifests/" + digest.FromString("x").String(), 404, "MANIFEST_UNKNOWN"},
		"another image's manifest":   {"/v2/pause/manifests/" + busybox.Digest, 404, "MANIFEST_UNKNOWN"},
		"another image's own layer":  {"/v2/pause/blobs/" + digest.FromString("layer of docker.io/library/busybox:1.36 for amd64").String(), 404, "BLOB_UNKNOWN"},
		"a file as a layer":          {"/v2/pause/blobs/" + digest.FromBytes(tool).String(), 404, "BLOB_UNKNOWN"},
		"no such repository":         {"/v2/library/nginx/manifests/1", 404, "NAME_UNKNOWN"},
		"no digest":                  {"/v2/pause/blobs/sha256:12", 400, "DIGEST_INVALID"},
		"no such endpoint":           {"/v2/pause/uploads/x", 404, "UNSUPPORTED"},
		"tags":                       {"/v2/library/busybox/tags/list", 200, `{"name":"docker.io/library/busybox","tags":["1.36","1.37"]}`},
		"the first tag":              {"/v2/library/busybox/tags/list?n=1", 200, `"tags":["1.36"]`},
		"tags after one":             {"/v2/library/busybox/tags/list?last=1.36", 200, `"tags":["1.37"]`},
		"tags after what is not one": {"/v2/library/busybox/tags/list?last=1.36.5", 200, `"tags":["1.37"]`},
		"no tags":                    {"/v2/library/busybox/tags/list?n=0", 200, `"tags":[]`},
		"odd n":                      {"/v2/library/busybox/tags/list?n=-1", 400, "UNSUPPORTED"},
		"catalog":                    {"/v2/_catalog", 200, `{"repositories":["docker.io/library/busybox","ghcr.io/team/tool","localhost-5000/own/thing","quay.io/team/tool","registry.k8s.io/pause"]}`},
		"referrers":                  {"/v2/pause/referrers/" + busybox.Digest, 200, `"manifests":[]`},
		"referrers of nothing":       {"/v2/pause/referrers/x", 400, "DIGEST_INVALID"},
		"a file":                     {"/files/kubelet/v1.32.2/linux-amd64/kubelet", 200, "a program a program"},
		"a package":                  {"/packages/debian-12/amd64/pool/socat_1.7_amd64.deb", 200, "a package"},
		"metadata of packages":       {"/packages/debian-12/amd64/Packages", 200, "Package: socat"},
		"as apt asks":                {"/packages/debian-12/amd64/./Packages", 200, "Package: socat"},
		"a folder":                   {"/files/kubelet/", 200, "  /files/kubelet/v1.32.2/linux-amd64/kubelet\n"},
		"the top":                    {"/", 200, "/packages/debian-12/amd64/Release\n"},
		"a folder without a slash":   {"/files/kubelet", 404, "not in the bundle"},
		"no such folder":             {"/files/etcd/", 404, "not in the bundle"},
	} {
		t.Run(name, func(t *testing.T) {
			resp, body := get(t, s, http.MethodGet, c.path)
			if resp.StatusCode != c.status || !strings.Contains(body, c.says) {
				t.Errorf("%d %.300s", resp.StatusCode, body)
			}
			head, nothing := get(t, s, http.MethodHead, c.path)
			for _, h := range []string{"Content-Type", "Content-Length", "Docker-Content-Digest", "Etag", "Link"} {
				if head.Header.Get(h) != resp.Header.Get(h) {
					t.Errorf("%s: %q of GET, %q of HEAD", h, resp.Header.Get(h), head.Header.Get(h))
				}
			}
			if head.StatusCode != c.status || nothing != "" {
				t.Errorf("HEAD: %d %q", head.StatusCode, nothing)
			}
		})
	}
}

// Files lie where bundle extract puts them.
func TestFilesAreAsExtracted(t *testing.T) {
	s, b := up(t, Options{})
	_, list := get(t, s, http.MethodGet, "/files/")
	if want := "/files/" + bundle.FilePath(b.Lock.Artifacts[0], b.Lock.Artifacts[0].Blobs()[0]) + "\n"; !strings.HasSuffix(list, want) {
		t.Errorf("%q does not end with %q", list, want)
	}
}

func TestContent(t *testing.T) {
	s, b := up(t, Options{})
	busybox := pin(t, b, "docker.io/library/busybox:1.36")
	resp, body := get(t, s, http.MethodGet, "/v2/library/busybox/manifests/1.36")
	if digest.FromString(body).String() != busybox.Digest || resp.Header.Get("Docker-Content-Digest") != busybox.Digest ||
		resp.Header.Get("Content-Type") != v1.MediaTypeImageIndex || resp.Header.Get("Docker-Distribution-API-Version") != "registry/2.0" {
		t.Errorf("%v %s", resp.Header, body)
	}
	if again, body := get(t, s, http.MethodGet, "/v2/library/busybox/manifests/1.36", "If-None-Match", resp.Header.Get("Etag")); again.StatusCode != http.StatusNotModified || body != "" {
		t.Errorf("what is known: %d %q", again.StatusCode, body)
	}
	for path, want := range map[string][]byte{"/v2/pause/blobs/" + layer(): large, "/files/kubelet/v1.32.2/linux-amd64/kubelet": tool} {
		if resp, body := get(t, s, http.MethodGet, path); !bytes.Equal([]byte(body), want) || resp.ContentLength != int64(len(want)) {
			t.Errorf("%s: %d bytes, announced %d, want %d", path, len(body), resp.ContentLength, len(want))
		}
	}
}

func TestNothingIsWritten(t *testing.T) {
	s, _ := up(t, Options{})
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions} {
		for _, path := range []string{"/v2/pause/blobs/uploads/", "/v2/pause/manifests/3.10", "/files/x", "/"} {
			resp, body := get(t, s, method, path)
			if resp.StatusCode != http.StatusMethodNotAllowed || !strings.Contains(body, "UNSUPPORTED") || resp.Header.Get("Allow") != "GET, HEAD" {
				t.Errorf("%s %s: %d %s", method, path, resp.StatusCode, body)
			}
		}
	}
}

// The names are registry.Mapper's, so that a node's hosts.toml may point here.
func TestNamespace(t *testing.T) {
	s, b := up(t, Options{Namespace: "site/kube"})
	for _, im := range b.Lock.Images {
		name, tag, err := registry.Mapper{Namespace: "site/kube"}.Repository(im.Reference)
		if err != nil {
			t.Fatal(err)
		}
		for _, prefix := range []string{"site/kube/", ""} {
			path := "/v2/" + prefix + strings.TrimPrefix(name, "site/kube/") + "/manifests/" + tag
			if resp, body := get(t, s, http.MethodGet, path); resp.Header.Get("Docker-Content-Digest") != im.Digest {
				t.Errorf("%s: %d %s", path, resp.StatusCode, body)
			}
		}
	}
	if resp, _ := get(t, s, http.MethodGet, "/v2/team/tool/manifests/v1?ns=ghcr.io"); resp.StatusCode != http.StatusOK {
		t.Errorf("said which registry: %d", resp.StatusCode)
	}
	if _, body := get(t, s, http.MethodGet, "/v2/_catalog?n=1"); body != `{"repositories":["site/kube/docker.io/library/busybox"]}` {
		t.Errorf("%s", body)
	}
}

// Every page leads to the next, until all was seen.
func TestCatalogInPages(t *testing.T) {
	s, _ := up(t, Options{})
	var all []string
	for next, n := "/v2/_catalog?n=2", 0; next != ""; n++ {
		if n > 5 {
			t.Fatal("the pages go on")
		}
		resp, body := get(t, s, http.MethodGet, next)
		var list struct{ Repositories []string }
		if err := json.Unmarshal([]byte(body), &list); err != nil {
			t.Fatal(err)
		}
		all = append(all, list.Repositories...)
		link, _, _ := strings.Cut(resp.Header.Get("Link"), ">")
		next = strings.TrimPrefix(link, "<")
	}
	if len(all) != 5 || !slices.IsSorted(all) {
		t.Errorf("%v", all)
	}
}

func TestReferrers(t *testing.T) {
	w := world(t)
	subject, err := w.Image("quay.io/signed/thing:1", []string{"amd64"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Referrer("quay.io/signed/thing:sig", subject, "application/vnd.example.signature", map[string]string{"by": "somebody"}); err != nil {
		t.Fatal(err)
	}
	b := open(t, w)
	h := handler(t, b, Options{})
	for query, want := range map[string]int{"": 1, "?artifactType=application/vnd.example.signature": 1, "?artifactType=text/plain": 0} {
		resp, body := answered(t, h, "/v2/signed/thing/referrers/"+subject.Digest+query)
		var index v1.Index
		if err := json.Unmarshal([]byte(body), &index); err != nil {
			t.Fatal(err)
		}
		if len(index.Manifests) != want || (resp.Header.Get("OCI-Filters-Applied") == "artifactType") != (query != "") || resp.Header.Get("Content-Type") != v1.MediaTypeImageIndex {
			t.Errorf("%q: %s %v", query, body, resp.Header)
		}
		if want == 1 && (index.Manifests[0].Annotations["by"] != "somebody" || index.Manifests[0].ArtifactType != "application/vnd.example.signature") {
			t.Errorf("%+v", index.Manifests[0])
		}
	}
}

func TestLog(t *testing.T) {
	var log bytes.Buffer
	s, _ := up(t, Options{Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	get(t, s, http.MethodGet, "/v2/pause/tags/list%0Alevel=ERROR")
	s.Close()
	if got := log.String(); !strings.Contains(got, "status=404") || strings.Count(got, "\n") != 1 {
		t.Errorf("%s", got)
	}
}
