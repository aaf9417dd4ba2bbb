package registry

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

const dockerList = "application/vnd.docker.distribution.manifest.list.v2+json"

// An index within an index is narrowed from below, and everything else in both,
// in unknown fields, stays.
func TestNarrow(t *testing.T) {
	s, _ := newMemorySource()
	held := s.put(v1.MediaTypeImageManifest, []byte(`{"layers":[]}`))
	gone := digest.FromString("gone").String()
	child := func(d v1.Descriptor, more string) string {
		text := `{"mediaType":"` + d.MediaType + `","size":` + string(mustJSON(d.Size)) + `,"digest":"` + d.Digest.String() + `"` + more + `}`
		return text
	}
	absent := `{"digest":"` + gone + `","size":5,"platform":{"os":"linux","architecture":"s390x"}}`
	inner := s.put(dockerList, []byte(`{"schemaVersion":2,"manifests":[`+absent+`,`+child(held, `,"platform":{"os":"linux","os.version":"1<2"}`)+`]}`))
	whole := s.put(v1.MediaTypeImageIndex, []byte(`{"schemaVersion":2,"manifests":[`+child(held, "")+`]}`))
	outer := s.put(v1.MediaTypeImageIndex, []byte(`{ "schemaVersion": 2, "x-own": {"b": 1, "a": 2.50}, "annotations": {"k":"v"},
		"manifests": [`+child(inner, "")+`,`+child(whole, "")+`,`+absent+`] }`))

	got, err := narrow(s, []v1.Descriptor{held, inner, whole, outer})
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 {
		t.Fatalf("%d narrowed: %v", len(got), got)
	}
	in, out := got[inner.Digest.String()], got[outer.Digest.String()]
	for _, d := range []document{in, out} {
		if d.descriptor.Digest != digest.FromBytes(d.text) || d.descriptor.Size != int64(len(d.text)) || strings.Contains(string(d.text), gone) {
			t.Errorf("%+v %s", d.descriptor, d.text)
		}
	}
	if in.descriptor.MediaType != dockerList || !strings.Contains(string(in.text), held.Digest.String()) {
		t.Errorf("%+v %s", in.descriptor, in.text)
	}
	var index struct {
		v1.Index
		Own json.RawMessage `json:"x-own"`
	}
	if err := json.Unmarshal(out.text, &index); err != nil {
		t.Fatal(err)
	}
	if len(index.Manifests) != 2 || index.Manifests[0].Digest != in.descriptor.Digest || index.Manifests[0].Size != in.descriptor.Size ||
		index.Manifests[1].Digest != whole.Digest || index.Annotations["k"] != "v" || string(index.Own) != `{"b":1,"a":2.50}` {
		t.Errorf("%s", out.text)
	}
	again, err := narrow(s, []v1.Descriptor{held, inner, whole, outer})
	if err != nil || again[outer.Digest.String()].descriptor.Digest != out.descriptor.Digest {
		t.Errorf("again: %v, %v", again, err)
	}
	if none, err := narrow(s, []v1.Descriptor{held, whole}); err != nil || len(none) != 0 {
		t.Errorf("a complete index: %v, %v", none, err)
	}
}

func TestNarrowRefusesWhatIsNoIndex(t *testing.T) {
	s, _ := newMemorySource()
	for _, text := range []string{``, `[]`, `{"manifests":{}}`, `{}`, `{"manifests":[{"digest":5}]}`, `{"manifests":[{}]}`} {
		if got, err := narrow(s, []v1.Descriptor{s.put(v1.MediaTypeImageIndex, []byte(text))}); err == nil {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// FuzzNarrow looks for an index of which something absent is left, or that is not
// the same when it is narrowed once more.
func FuzzNarrow(f *testing.F) {
	kept := digest.FromString("kept")
	f.Add([]byte(`{"manifests":[{"digest":"` + kept.String() + `"},{"digest":"sha256:0"}],"x":[1,{"y":null}]}`))
	f.Add([]byte(`{"manifests":[]}`))
	f.Add([]byte(`{"manifests":null,"Manifests":[{}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		held := map[digest.Digest]bool{kept: true}
		less, _, err := narrowIndex(text, held, nil)
		if err != nil {
			return
		}
		again, changed, err := narrowIndex(less, held, nil)
		if err != nil || changed || string(again) != string(less) {
			t.Errorf("%q: %q, then %q, %v", text, less, again, err)
		}
	})
}
