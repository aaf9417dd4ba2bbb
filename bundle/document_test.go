package bundle

import (
	"errors"
	"strings"
	"testing"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/mensylisir/kubexm/bundle/archive"
)

// TestDocumentsThatReadersDifferOn: what one tool takes for this and another for
// that is refused, and what is only unusual is not.
func TestDocumentsThatReadersDifferOn(t *testing.T) {
	for _, x := range []struct {
		name, text string
		want       archive.Code
	}{
		{"plain", `{"a":[{"b":1},{"b":2}],"c":{"a":null,"b":[]}}`, ""},
		{"annotations in two cases", `{"annotations":{"A":"","a":""},"b":{"a":1}}`, ""},
		{"a key in an inner object", `{"a":{"a":{"a":1}}}`, ""},
		{"a value that is a key elsewhere", `{"a":"b","b":"a","c":["a","a"]}`, ""},
		{"twice", `{"a":1,"b":2,"a":3}`, CodeDocument},
		{"twice after an object", `{"a":{"b":1},"c":[],"a":3}`, CodeDocument},
		{"twice in a list's object", `[{"a":1},{"a":1,"a":1}]`, CodeDocument},
		{"twice but for case", `{"layers":1,"Layers":2}`, CodeDocument},
		{"an annotation twice", `{"annotations":{"a":"","a":""}}`, CodeDocument},
		{"twice, escaped", `{"a":1,"\u0061":2}`, CodeDocument},
		{"an object after annotations", `{"annotations":1,"x":{"a":1,"A":1}}`, CodeDocument},
		{"cut", `{"a":`, CodeDocument},
		{"not JSON", `hello`, CodeDocument},
		{"deep", strings.Repeat("[", 100), CodeLimit},
		{"many elements", "[" + strings.Repeat("1,", maxElements) + "1]", CodeLimit},
		{"many lists", strings.Repeat("[[],", 3) + strings.Repeat("[],", maxElements), CodeLimit},
	} {
		var v any
		if err := decodeJSON([]byte(x.text), &v); x.want == "" && err != nil || x.want != "" && !errors.Is(err, x.want) {
			t.Errorf("%s: %v, want %q", x.name, err, x.want)
		}
	}
}

// TestKinds: a document must match the media type of its descriptor.
func TestKinds(t *testing.T) {
	config := &v1.Descriptor{}
	for _, x := range []struct {
		name, as string
		m        parts
		bad      bool
	}{
		{"a manifest", v1.MediaTypeImageManifest, parts{Config: config}, false},
		{"an index", v1.MediaTypeImageIndex, parts{Manifests: []v1.Descriptor{}}, false},
		{"a manifest that says so", mediaDockerManifest, parts{MediaType: mediaDockerManifest, Config: config}, false},
		{"a manifest that says it is another", v1.MediaTypeImageManifest, parts{MediaType: mediaDockerManifest, Config: config}, true},
		{"a manifest with manifests", v1.MediaTypeImageManifest, parts{Config: config, Manifests: []v1.Descriptor{}}, true},
		{"a manifest without a config", v1.MediaTypeImageManifest, parts{}, true},
		{"an index with layers", v1.MediaTypeImageIndex, parts{Layers: []v1.Descriptor{}}, true},
		{"an index with a config", mediaDockerList, parts{Config: config}, true},
	} {
		if err := x.m.check(v1.Descriptor{MediaType: x.as}); (err != nil) != x.bad || err != nil && !errors.Is(err, CodeTree) {
			t.Errorf("%s: %v", x.name, err)
		}
	}
}
