package manifest

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const (
	aaaa = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	bbbb = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
)

var (
	amd64 = Platform{OS: "linux", Arch: "amd64"}
	arm64 = Platform{OS: "linux", Arch: "arm64"}
)

func sampleLock() *Lock {
	return &Lock{
		APIVersion: APIVersion, Kind: LockKind, Cluster: "demo",
		Created: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Serial: 20260102030405,
		Config: "sha256:" + aaaa, Platforms: []Platform{arm64, amd64},
		Sets: []Set{{Name: "v1.32.2", Components: map[string]string{"kubernetes": "1.32.2"}}},
		Artifacts: []Artifact{
			{
				ID: "binary/containerd/1.7.24/linux/amd64", Kind: Binary, Name: "containerd", Version: "1.7.24", Platform: amd64,
				Sets: []string{"v1.32.2"}, Address: "https://example.com/containerd.tar.gz", Archive: "tar.gz", Size: 10, SHA256: aaaa, Trust: FromCatalog,
				Members: []Member{{Path: "bin/ctr", Name: "ctr", Size: 2, SHA256: bbbb}, {Path: "bin/containerd", Name: "containerd", Size: 3, SHA256: aaaa}},
			},
			{
				ID: "binary/kubelet/1.32.2/linux/amd64", Kind: Binary, Name: "kubelet", Version: "1.32.2", Platform: amd64,
				Sets: []string{"v1.32.2"}, Address: "https://example.com/kubelet", Size: 7, SHA256: bbbb, Trust: FromPublished,
			},
			{
				ID: "packages/debian-12/12/linux/amd64", Kind: Packages, Name: "debian-12", Version: "12",
				Platform: Platform{OS: "linux", Arch: "amd64", Distribution: "debian", Release: "12"},
				Sets:     []string{"v1.32.2"}, Size: 8, Trust: FromPublished,
				Packages: &PackageSet{Format: Deb, Want: []string{"socat"}, Date: time.Date(2025, 1, 2, 3, 4, 5, 0, time.UTC), Base: []string{"libc6 2.36-9 (amd64)"}},
				Members: []Member{
					{Path: "Release", Name: "Release", Size: 3, SHA256: bbbb},
					{
						Path: "pool/socat_1.7.4.4-2_amd64.deb", Name: "pool/socat_1.7.4.4-2_amd64.deb", Size: 5, SHA256: aaaa, Package: "socat 1.7.4.4-2 (amd64)",
						Address: "https://example.com/debian/pool/main/s/socat/socat_1.7.4.4-2_amd64.deb", Record: "Package: socat\nVersion: 1.7.4.4-2\nDescription: relay\n .\n and more\n",
					},
				},
			},
			{
				ID: "file/flannel/v0.27.4", Kind: File, Name: "flannel", Version: "v0.27.4",
				Sets: []string{"v1.32.2"}, Address: "https://example.com/kube-flannel.yml", Size: 7, SHA256: bbbb, Trust: FromContent,
			},
		},
		Images: []ImagePin{{
			ID: "image/registry.k8s.io/pause:3.10", Names: []string{"pause"}, Reference: "registry.k8s.io/pause:3.10", Sets: []string{"v1.32.2"},
			MediaType: "application/vnd.oci.image.index.v1+json", Digest: "sha256:" + aaaa, Size: 5,
			Platforms: []PlatformImage{{Platform: amd64, MediaType: "application/vnd.oci.image.manifest.v1+json", Digest: "sha256:" + bbbb, Size: 6, Content: 100}},
		}},
	}
}

func TestLockComesBackEqual(t *testing.T) {
	text, err := EncodeLock(sampleLock())
	if err != nil {
		t.Fatal(err)
	}
	back, problems := DecodeLock(bytes.NewReader(text))
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	want := sampleLock()
	want.Sort()
	if diff := cmp.Diff(want, back); diff != "" {
		t.Error(diff)
	}
	again, err := EncodeLock(back)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(text, again) {
		t.Errorf("encoding is not stable:\n%s\n%s", text, again)
	}
}

func TestLockOrderDoesNotMatter(t *testing.T) {
	a, b := sampleLock(), sampleLock()
	b.Artifacts[0], b.Artifacts[2] = b.Artifacts[2], b.Artifacts[0]
	b.Platforms[0], b.Platforms[1] = b.Platforms[1], b.Platforms[0]
	at, err := EncodeLock(a)
	if err != nil {
		t.Fatal(err)
	}
	bt, err := EncodeLock(b)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(at, bt) {
		t.Errorf("the same lock in another order is other bytes")
	}
}

func TestDecodeLockRefuses(t *testing.T) {
	edit := func(f func(*Lock)) string {
		l := sampleLock()
		f(l)
		text, err := EncodeLock(l)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for name, c := range map[string]struct{ text, want string }{
		"an unknown field":           {edit(func(*Lock) {}) + "bogus: 1\n", "bogus"},
		"no yaml":                    {"\t{", "error"},
		"an empty file":              {"", "EOF"},
		"a second document":          {edit(func(*Lock) {}) + "---\na: b\n", "second document"},
		"another kind":               {edit(func(l *Lock) { l.Kind = "Cluster" }), "apiVersion: is"},
		"no cluster":                 {edit(func(l *Lock) { l.Cluster = "" }), "cluster: is missing"},
		"no serial":                  {edit(func(l *Lock) { l.Serial = 0 }), "serial"},
		"no config":                  {edit(func(l *Lock) { l.Config = "sha256:xyz" }), `"sha256:xyz" is not a sha256 digest`},
		"no sets":                    {edit(func(l *Lock) { l.Sets = nil; l.Artifacts = nil; l.Images = nil }), "sets: is empty"},
		"a set twice":                {edit(func(l *Lock) { l.Sets = append(l.Sets, l.Sets[0]) }), "v1.32.2 is listed twice"},
		"an unknown set":             {edit(func(l *Lock) { l.Images[0].Sets = []string{"v9"} }), "images[0].sets: v9 is not a set"},
		"an id twice":                {edit(func(l *Lock) { l.Artifacts[1].ID = l.Artifacts[0].ID }), "is not unique"},
		"no address":                 {edit(func(l *Lock) { l.Artifacts[1].Address = "" }), "address: is missing"},
		"upper-case hex":             {edit(func(l *Lock) { l.Artifacts[1].SHA256 = strings.ToUpper(aaaa) }), "is not pinned"},
		"an unpinned member":         {edit(func(l *Lock) { l.Artifacts[0].Members[0].SHA256 = "" }), "bin/ctr is not pinned"},
		"members, no archive":        {edit(func(l *Lock) { l.Artifacts[0].Archive = "" }), "members: must be set for an archive or a repository of packages"},
		"packages of nothing":        {edit(func(l *Lock) { l.Artifacts[2].Packages = nil }), "artifacts[3].packages: is missing"},
		"packages of no kind":        {edit(func(l *Lock) { l.Artifacts[2].Packages.Format = "apk" }), `packages.format: is "apk"`},
		"packages of another":        {edit(func(l *Lock) { l.Artifacts[2].Platform.Release = "13" }), "is not the platform of packages for debian-12"},
		"a package without a record": {edit(func(l *Lock) { l.Artifacts[2].Members[1].Record = "" }), "has some of package, address and record, but not all"},
		"a package outside":          {edit(func(l *Lock) { l.Artifacts[2].Members[0].Path = "../Release" }), `"../Release" is not a valid path`},
		"an unpinned image":          {edit(func(l *Lock) { l.Images[0].Digest = "" }), "is not pinned"},
		"no platform":                {edit(func(l *Lock) { l.Images[0].Platforms = nil }), "images[0].platforms: is empty"},
		"a bad platform":             {edit(func(l *Lock) { l.Images[0].Platforms[0].Size = 0 }), "linux/amd64 is not pinned"},
	} {
		t.Run(name, func(t *testing.T) {
			l, problems := DecodeLock(strings.NewReader(c.text))
			if l != nil || problems.Err() == nil {
				t.Fatalf("accepted: %v", problems)
			}
			if !strings.Contains(problems.Error(), c.want) {
				t.Errorf("problems do not say %q:\n%v", c.want, problems)
			}
		})
	}
}

func TestLockFinds(t *testing.T) {
	l := sampleLock()
	for _, c := range []struct {
		need Need
		on   Platform
		want string // name of the blob, "" for an error
	}{
		{Need{Kind: Binary, Name: "kubelet"}, amd64, "kubelet"},
		{Need{Kind: Binary, Name: "kubelet", Set: "v1.32.2"}, amd64, "kubelet"},
		{Need{Kind: Binary, Name: "kubelet", Set: "v1.31.0"}, amd64, ""},
		{Need{Kind: Binary, Name: "kubelet"}, arm64, ""},
		{Need{Kind: Binary, Name: "containerd/ctr"}, amd64, "ctr"},
		{Need{Kind: Binary, Name: "containerd"}, amd64, ""},
		{Need{Kind: Binary, Name: "containerd/runc"}, amd64, ""},
		{Need{Kind: File, Name: "flannel"}, arm64, "kube-flannel.yml"},
		{Need{Kind: Packages, Name: "debian-12/Release"}, amd64, "Release"},
		{Need{Kind: Packages, Name: "debian-12/Release"}, Platform{OS: "linux", Arch: "amd64", Distribution: "debian", Release: "12"}, "Release"},
		{Need{Kind: Packages, Name: "debian-12/pool/socat_1.7.4.4-2_amd64.deb"}, amd64, "pool/socat_1.7.4.4-2_amd64.deb"},
		{Need{Kind: Packages, Name: "debian-12/Release"}, arm64, ""},
		{Need{Kind: Packages, Name: "debian-12"}, amd64, ""},
	} {
		b, err := l.File(c.need, c.on)
		if (err == nil) != (c.want != "") || b.Name != c.want {
			t.Errorf("%v on %v: got %q, %v; want %q", c.need, c.on, b.Name, err, c.want)
		}
	}
	if im, err := l.Image(Need{Kind: Image, Name: "pause"}); err != nil || im.Reference != "registry.k8s.io/pause:3.10" {
		t.Errorf("pause: %v, %v", im, err)
	}
	if a, err := l.Repository(Need{Kind: Packages, Name: "debian-12"}, amd64); err != nil || a.Packages.Want[0] != "socat" {
		t.Errorf("debian-12: %v, %v", a, err)
	}
	if _, err := l.Repository(Need{Kind: Packages, Name: "debian-12"}, arm64); err == nil {
		t.Error("packages for another architecture were found")
	}
	if _, err := l.Image(Need{Kind: Image, Name: "etcd"}); err == nil {
		t.Error("etcd was found")
	}
}

func TestPlatformText(t *testing.T) {
	for _, s := range []string{"", "linux/amd64", "linux/arm64/debian-12", "linux/amd64/openeuler-22.03-lts"} {
		p, err := ParsePlatform(s)
		if err != nil || p.String() != s {
			t.Errorf("%q became %q, %v", s, p, err)
		}
	}
	for _, s := range []string{"linux", "/", "linux/", "a/b/c", "a/b/c-", "a/b/c-d/e"} {
		if p, err := ParsePlatform(s); err == nil {
			t.Errorf("%q was accepted as %q", s, p)
		}
	}
}

// TestLockBounds: what was made to take memory is refused before it does, and a lock
// far larger than any bundle's is not.
func TestLockBounds(t *testing.T) {
	l := sampleLock()
	for i := range 5000 {
		a := l.Artifacts[0]
		a.ID = fmt.Sprintf("%s/%d", a.ID, i)
		l.Artifacts = append(l.Artifacts, a)
	}
	text, err := EncodeLock(l)
	if err != nil {
		t.Fatal(err)
	}
	if _, problems := DecodeLock(bytes.NewReader(text)); problems.Err() != nil {
		t.Errorf("a lock of %d bytes: %.200s", len(text), problems.Error())
	}
	for _, x := range []struct{ name, text, want string }{
		{"many values", "images: [" + strings.Repeat("a,", 7<<20) + "a]\n", "more than 524288 values"},
		{"many lists in each other's first item", strings.Repeat("- ", 7<<20) + "a\n", "more than 524288 values"},
		{"many wrong ones", "images: [" + strings.Repeat("a,", 100_000) + "a]\n", "more problems than these 200"},
		{"large", strings.Repeat("#", 17<<20), "larger than"},
		{"deep", strings.Repeat("[", 100_000), "depth"},
		{"a key twice", "cluster: a\ncluster: b\n", "already defined"},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, problems := DecodeLock(strings.NewReader(x.text))
		runtime.ReadMemStats(&after)
		if err := problems.Err(); err == nil || !strings.Contains(err.Error(), x.want) || len(err.Error()) > 200_000 {
			t.Errorf("%s: %.300s", x.name, problems.Error())
		}
		if mb := (after.TotalAlloc - before.TotalAlloc) >> 20; mb > 300 {
			t.Errorf("%s: %d MB were allocated", x.name, mb)
		}
	}
}

func FuzzDecodeLock(f *testing.F) {
	text, err := EncodeLock(sampleLock())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte("{}"))
	f.Add([]byte("a: &a [*a]"))
	f.Fuzz(func(t *testing.T, b []byte) {
		l, problems := DecodeLock(bytes.NewReader(b))
		if (l == nil) != (problems.Err() != nil) {
			t.Fatalf("lock %v with problems %v", l, problems)
		}
		if l == nil {
			return
		}
		text, err := EncodeLock(l)
		if err != nil {
			t.Fatal(err)
		}
		back, problems := DecodeLock(bytes.NewReader(text))
		if problems.Err() != nil {
			t.Fatalf("what was encoded is refused: %v", problems)
		}
		if diff := cmp.Diff(l, back); diff != "" {
			t.Fatal(diff)
		}
	})
}
