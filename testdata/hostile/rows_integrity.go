package hostile

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/mensylisir/kubexm/manifest"
)

// integrityRows: bytes that are not what is said of them, and documents that say
// one thing to one reader and another to the next.
func integrityRows() []row {
	all := []row{
		{name: "blob bit flip", code: "archive-digest", make: from(func(p *pack) { flipIn(p.first(false)) })},
		{name: "blob bit flip under another's checksum", code: "archive-digest", make: from(func(p *pack) {
			m := p.first(true)
			old := blobName(digestOf(m.data))
			flipIn(m)
			m.name = old
		})},
		{name: "blob bit flip in compressed bytes", code: "archive-frame", make: from(func(p *pack) {
			m := p.first(true)
			if b, err := chunks(m.data); err == nil {
				b[len(b)/2] ^= 4
				m.frames = b
			}
		})},
		{name: "truncated blob", code: "bundle-tree", make: from(func(p *pack) {
			m := p.first(false)
			m.listed = &entry{Digest: digestOf(m.data)}
			m.data = m.data[:len(m.data)-1]
		})},
		{name: "truncated blob, compressed", code: "archive-size", make: from(func(p *pack) {
			m := p.first(true)
			if b, err := chunks(m.data[:len(m.data)-1]); err == nil {
				m.frames = b
			}
		})},
		{name: "truncated frame of a blob", code: "archive-frame", make: from(func(p *pack) {
			m := p.first(true)
			if b, err := chunks(m.data); err == nil {
				m.frames = b[:len(b)-5]
			}
		})},
		{name: "extra unreferenced blob", code: "bundle-tree", make: of(func(t *truth) error { t.add([]byte("nobody's"), false); return nil })},
		{name: "missing blob", code: "bundle-tree", make: from(func(p *pack) { p.drop(p.first(false).name) })},
		{name: "missing lock", code: "archive-missing", make: of(func(t *truth) error { t.head = slices.Delete(slices.Clone(t.head), lockAt, lockAt+1); return nil })},
		{name: "duplicate entry, same bytes", code: "archive-duplicate", make: from(func(p *pack) { p.insert(*p.first(false)) })},
		{name: "duplicate entry, different bytes", code: "archive-duplicate", make: from(func(p *pack) {
			m := *p.first(false)
			m.listed = &entry{Digest: digestOf(m.data)}
			m.data = append(slices.Clone(m.data), 'x')
			p.insert(m)
		})},
		{name: "descriptor size is not the blob's", code: "bundle-tree", make: of(func(t *truth) error {
			return t.editChild(func(m document) {
				d, _ := m["config"].(map[string]any)
				d["size"] = 1_000_000
			})
		})},
		{name: "media type confusion: a manifest named as an index", code: "bundle-tree", make: of(func(t *truth) error {
			return t.editRoot(func(root document) {
				d, _ := children(root)[len(children(root))-1].(map[string]any)
				if d["mediaType"] == v1.MediaTypeImageIndex {
					d["mediaType"] = v1.MediaTypeImageManifest
					return
				}
				d["mediaType"] = v1.MediaTypeImageIndex
			})
		})},
		{name: "media type confusion: a manifest with manifests", code: "bundle-tree", make: of(func(t *truth) error {
			return t.editChild(func(m document) { m["manifests"] = []any{} })
		})},
		{name: "media type confusion: a manifest that says it is an index", code: "bundle-tree", make: of(func(t *truth) error {
			return t.editChild(func(m document) { m["mediaType"] = v1.MediaTypeImageIndex })
		})},
		{name: "media type confusion: a file named as a manifest", code: "bundle-document", make: of(func(t *truth) error {
			return t.editChild(func(m document) {
				layers, _ := m["layers"].([]any)
				d, _ := layers[0].(map[string]any)
				d["mediaType"] = v1.MediaTypeImageManifest
			})
		})},
		{name: "media type confusion: the root named as a manifest", code: "bundle-root", make: of(func(t *truth) error {
			t.index = bytes.Replace(t.index, []byte(v1.MediaTypeImageIndex+`","digest`), []byte(v1.MediaTypeImageManifest+`","digest`), 1)
			return nil
		})},
		{name: "duplicate JSON keys in the root", code: "bundle-document", make: of(func(t *truth) error {
			return t.setRoot(bytes.Replace(t.head[0], []byte(`{`), []byte(`{"manifests":[],`), 1))
		})},
		{name: "duplicate JSON keys in index.json", code: "bundle-document", make: of(func(t *truth) error {
			t.index = bytes.Replace(t.index, []byte(`{`), []byte(`{"manifests":[],`), 1)
			return nil
		})},
		{name: "duplicate JSON keys in a manifest", code: "bundle-document", make: of(func(t *truth) error {
			return t.setMetadata(bytes.Replace(t.head[metadataAt], []byte(`{`), []byte(`{"layers":[],`), 1))
		})},
		{name: "duplicate JSON keys but for their case", code: "bundle-document", make: of(func(t *truth) error {
			return t.setMetadata(bytes.Replace(t.head[metadataAt], []byte(`{`), []byte(`{"LAYERS":[],`), 1))
		})},
		{name: "duplicate JSON keys in the summary", code: "bundle-document", make: of(func(t *truth) error {
			return t.setDocument(summaryAt, bytes.Replace(t.head[summaryAt], []byte(`{`), []byte(`{"cluster":"other",`), 1))
		})},
		{name: "duplicate keys in the lock", code: "bundle-document", make: of(func(t *truth) error {
			return t.setDocument(lockAt, append(slices.Clone(t.head[lockAt]), "cluster: other\n"...))
		})},
		{name: "duplicate keys in the index", code: "archive-index", make: from(func(p *pack) {
			p.index = func(b []byte) []byte { return bytes.Replace(b, []byte(`"size":`), []byte(`"size":1,"size":`), 1) }
		})},
		{name: "trailing garbage", code: "archive-truncated", make: after(func(b []byte) []byte { return append(b, "garbage"...) })},
		{name: "second frame", code: "archive-truncated", make: after(func(b []byte) []byte { return append(b, rawFrame([]byte("more"))...) })},
		{name: "second archive", code: "archive-index", make: after(func(b []byte) []byte { return append(b, b...) })},
		{name: "skippable frame before everything", code: "archive-format", make: after(func(b []byte) []byte { return append([]byte(skipped), b...) })},
		{name: "skippable frame among a blob's", code: "archive-frame", make: from(func(p *pack) {
			m := p.first(true)
			if b, err := chunks(m.data); err == nil {
				m.frames = append([]byte(skipped), b...)
			}
		})},
		{name: "skippable frame between members", code: "archive-index", make: from(func(p *pack) {
			m := p.first(false)
			m.pad = append(rawFrame(make([]byte, -len(m.data)&511)), skipped...)
		})},
		{name: "skippable frame before the index", code: "archive-index", make: from(func(p *pack) { p.end = append(rawFrame(make([]byte, 1024)), skipped...) })},
		{name: "skippable frame after the index", code: "archive-truncated", make: after(func(b []byte) []byte { return append(b, skipped...) })},
		{name: "empty file", code: "archive-format", make: after(func([]byte) []byte { return nil })},
		{name: "gzip renamed", code: "archive-format", make: after(func([]byte) []byte {
			return []byte("\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03" + strings.Repeat("x", 5000))
		})},
		{name: "plain tar renamed", code: "archive-format", make: after(func([]byte) []byte { h, _ := tarHeader(layoutName, 0); return append(h, make([]byte, 1024)...) })},
		{name: "no end marker", code: "archive-index", make: from(func(p *pack) { p.end = []byte{} })},
		{name: "half an end marker", code: "archive-index", make: from(func(p *pack) { p.end = rawFrame(make([]byte, 512)) })},
		{name: "an invalid end marker", code: "archive-end", make: from(func(p *pack) {
			end := make([]byte, 1024)
			end[700] = 1
			p.end = rawFrame(end)
		})},
		{name: "no index", code: "archive-truncated", make: from(func(p *pack) { p.index = func([]byte) []byte { return nil } })},
		{name: "oci-layout of another version", code: "bundle-root", make: of(func(t *truth) error { t.layout = []byte(`{"imageLayoutVersion":"9.0.0"}`); return nil })},
		{name: "index.json with further entries", code: "bundle-root", make: of(func(t *truth) error {
			t.index = bytes.Replace(t.index, []byte(`"mediaType"`), []byte(`"annotations":{"a":"b"},"mediaType"`), 1)
			return nil
		})},
		{name: "config that the lock was not made for", code: "bundle-document", make: of(func(t *truth) error {
			return t.setDocument(configAt, append(slices.Clone(t.head[configAt]), "# and more\n"...))
		})},
		{name: "lock that pins missing content", code: "bundle-tree", make: of(func(t *truth) error {
			return t.editLock(func(l *manifest.Lock) {
				i := slices.IndexFunc(l.Artifacts, func(a manifest.Artifact) bool { return a.Single() })
				l.Artifacts[i].SHA256 = digestOf([]byte("other"))[len("sha256:"):]
			})
		})},
	}
	for at := 1; at < 100; at++ {
		all = append(all, row{name: fmt.Sprintf("archive cut at %d %%", at), code: "archive-truncated", make: after(func(b []byte) []byte { return b[:len(b)*at/100] })})
	}
	for i := range all {
		all[i].group = "integrity"
	}
	return all
}

// skipped is a skippable frame.
const skipped = "\x50\x2a\x4d\x18\x04\x00\x00\x00data"

// flipIn changes one bit of a member's data, and nothing that is said of it.
func flipIn(m *member) {
	m.listed = &entry{Digest: digestOf(m.data)}
	m.data = slices.Clone(m.data)
	m.data[len(m.data)/2] ^= 0x10
}

// drop leaves a member out.
func (p *pack) drop(name string) {
	p.members = slices.DeleteFunc(slices.Clone(p.members), func(m member) bool { return m.name == name })
}

// editChild changes the manifest of an artifact, and makes the root right.
func (t *truth) editChild(change func(m document)) error {
	var failed error
	err := t.editRoot(func(root document) {
		for _, c := range children(root) {
			d, _ := c.(map[string]any)
			if d["artifactType"] != "application/vnd.kubexm.artifact.v1+json" && d["artifactType"] != "application/vnd.kubexm.artifact.v1" {
				continue
			}
			i := slices.IndexFunc(t.blobs, func(m member) bool { digest, _ := d["digest"].(string); return m.name == blobName(digest) })
			if i < 0 {
				continue
			}
			m, err := decode(t.blobs[i].data)
			if err != nil {
				failed = err
				return
			}
			change(m)
			text := encode(m)
			t.blobs[i] = member{name: blobName(digestOf(text)), data: text}
			d["digest"], d["size"] = digestOf(text), len(text)
			return
		}
		failed = fmt.Errorf("the root has no artifact")
	})
	if failed != nil {
		return failed
	}
	return err
}
