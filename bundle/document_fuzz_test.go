package bundle

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/mensylisir/kubexm/bundle/archive"
)

// FuzzDocument reads any manifest or index. What is accepted has nothing in it that
// decoding dropped, and is of one kind.
func FuzzDocument(f *testing.F) {
	for _, text := range []string{
		`{"schemaVersion":2,"mediaType":"` + v1.MediaTypeImageIndex + `","manifests":[{"mediaType":"x","digest":"sha256:00","size":1,"annotations":{"A":"","a":""}}]}`,
		`{"schemaVersion":2,"config":{"digest":"","size":0},"layers":[]}`,
		`{"config":{},"manifests":[]}`, `{"a":1,"a":2}`, `{"layers":[],"LAYERS":[]}`, `[[[[[[[[1]]]]]]]]`, `{"a":{"b":{}},"c":[{},{}]}`, `{}{}`, `{"size":1e400}`, "\x00", "",
	} {
		f.Add([]byte(text), false)
		f.Add([]byte(text), true)
	}
	f.Fuzz(func(t *testing.T, text []byte, index bool) {
		var m parts
		err := decodeJSON(text, &m)
		if err != nil {
			if _, coded := errors.AsType[archive.Code](err); !coded {
				t.Fatalf("an error without a code: %v", err)
			}
			return
		}
		var v any
		d := json.NewDecoder(bytes.NewReader(text))
		d.UseNumber() // how large a number may be is for its field to say
		if err := d.Decode(&v); err != nil {
			t.Fatalf("it depends on who asks: %v", err)
		}
		seen, kept := keysIn(t, text), count(v)
		if seen != kept {
			t.Errorf("%d keys stand in it, %d are left once it is read", seen, kept)
		}
		as := v1.Descriptor{MediaType: v1.MediaTypeImageManifest}
		if index {
			as.MediaType = v1.MediaTypeImageIndex
		}
		if m.check(as) == nil && (index && (m.Layers != nil || m.Config != nil) || !index && m.Manifests != nil) {
			t.Errorf("%+v is of two kinds", m)
		}
	})
}

// keysIn counts the keys in the text itself: what stands before a colon outside of
// strings.
func keysIn(t *testing.T, text []byte) int {
	t.Helper()
	n, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case c == ':' && !quoted:
			n++
		}
	}
	return n
}

// count counts those of what was made of it.
func count(v any) int {
	n := 0
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			n += count(x)
		}
	case map[string]any:
		n = len(v)
		for _, x := range v {
			n += count(x)
		}
	}
	return n
}
