package hostile

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/mensylisir/kubexm/bundle"
)

// sizeRows: what is small on the disk, or says that it is, and is not.
func sizeRows() []row {
	sizes := []row{
		{name: "decompression bomb of zeros", code: "archive-size", make: bomb(func() ([]byte, error) { return compressed(make([]byte, 64<<20), 5) })},
		{name: "decompression bomb of zeros in a manifest", code: "bundle-limit", make: child(v1.MediaTypeImageManifest, func() []byte { return make([]byte, 300<<20) }), slow: true},
		{name: "1 GiB window", code: "archive-window", make: bomb(func() ([]byte, error) {
			return append([]byte("\x28\xb5\x2f\xfd\x00\xa0"), rawFrame(make([]byte, 4096))[6:]...), nil
		})},
		{name: "1 GiB window in a single segment", code: "archive-window", make: bomb(func() ([]byte, error) {
			return append([]byte("\x28\xb5\x2f\xfd\xa0\x00\x00\x00\x40"), rawFrame(make([]byte, 4096))[6:]...), nil
		})},
		{name: "header size 2^60", code: "archive-header", make: sized(1 << 60)},
		{name: "header size 2^60, in the index too", code: "archive-limit", make: from(func(p *pack) {
			m := p.first(false)
			m.header, m.listed = large(m.name, 1<<60), &entry{Size: 1 << 60}
		})},
		{name: "negative size", code: "archive-header", make: sized(1<<64 - 1)},
		{name: "negative size, in the index too", code: "archive-limit", make: from(func(p *pack) {
			m := p.first(false)
			m.header, m.listed = large(m.name, 1<<64-1), &entry{Size: -1}
		})},
		{name: "10M entries", code: "archive-size", slow: true, make: bomb(func() ([]byte, error) {
			h, err := tarHeader(layoutName, 0)
			if err != nil {
				return nil, err
			}
			return compressed(bytes.Repeat(h, 1<<17), 80)
		})},
		{name: "10M entries in the index", code: "archive-index", make: from(func(p *pack) {
			p.index = func([]byte) []byte {
				return append([]byte(`{"format":"kubexm-archive/1","members":10000000}`+"\n"), bytes.Repeat([]byte("{}\n"), 10_000_000)...)
			}
		})},
		{name: "5M entries in an index of the largest size", code: "archive-index", make: from(func(p *pack) {
			p.index = func([]byte) []byte {
				return append([]byte(`{"format":"kubexm-archive/1","members":5500000}`+"\n"), bytes.Repeat([]byte("{}\n"), 5_500_000)...)
			}
		})},
		{name: "nested index depth 100", code: "bundle-limit", make: of(func(t *truth) error {
			in := t.add(encode(document{"schemaVersion": 2, "mediaType": v1.MediaTypeImageIndex, "manifests": []any{}}), false)
			for range 100 {
				in["mediaType"] = v1.MediaTypeImageIndex
				in = t.add(encode(document{"schemaVersion": 2, "mediaType": v1.MediaTypeImageIndex, "manifests": []any{in}}), false)
			}
			in["mediaType"] = v1.MediaTypeImageIndex
			return t.editRoot(func(root document) { root["manifests"] = append(children(root), in) })
		})},
		{name: "nested index, a cycle", code: "archive-digest", make: of(func(t *truth) error {
			own := digestOf([]byte("itself"))
			text := encode(document{"schemaVersion": 2, "manifests": []any{descriptor{"mediaType": v1.MediaTypeImageIndex, "digest": own, "size": 0}}})
			text = bytes.Replace(text, []byte(`"size":0`), fmt.Appendf(nil, `"size":%d`, len(text)+2), 1)
			t.blobs = append(t.blobs, member{name: blobName(own), data: text, listed: &entry{Digest: own}})
			return t.editRoot(func(root document) {
				root["manifests"] = append(children(root), descriptor{"mediaType": v1.MediaTypeImageIndex, "digest": own, "size": len(text)})
			})
		})},
		{name: "64 MiB manifest", code: "bundle-limit", make: child(v1.MediaTypeImageManifest, func() []byte {
			return []byte(`{"schemaVersion":2,"config":` + strings.Repeat(" ", 64<<20) + `{}}`)
		}), slow: true},
		{name: "1M descriptors", code: "bundle-limit", slow: true, make: child(v1.MediaTypeImageIndex, func() []byte {
			one := `{"mediaType":"` + v1.MediaTypeImageManifest + `","digest":"` + digestOf(nil) + `","size":0},`
			return []byte(`{"schemaVersion":2,"manifests":[` + strings.Repeat(one, 1_000_000) + `{}]}`)
		})},
		{name: "1M descriptors of 3 bytes", code: "bundle-limit", make: child(v1.MediaTypeImageIndex, func() []byte {
			return []byte(`{"schemaVersion":2,"manifests":[` + strings.Repeat("{},", 1_000_000) + `{}]}`)
		})},
		{name: "1M numbers in place of descriptors", code: "bundle-limit", make: child(v1.MediaTypeImageIndex, func() []byte {
			return []byte(`{"schemaVersion":2,"manifests":[` + strings.Repeat("1,", 1_000_000) + `1]}`)
		})},
		{name: "1M descriptors in ten indexes", code: "bundle-limit", make: of(func(t *truth) error {
			return t.editRoot(func(root document) {
				for i := range 10 {
					d := t.add([]byte(`{"schemaVersion":2,"manifests":[`+strings.Repeat(`{"digest":"sha256:0","size":1},`, 100_000+i)+`{}]}`), true)
					d["mediaType"] = v1.MediaTypeImageIndex
					root["manifests"] = append(children(root), d)
				}
			})
		})},
		{name: "1M annotations", code: "bundle-limit", make: child(v1.MediaTypeImageIndex, func() []byte {
			var b strings.Builder
			b.WriteString(`{"schemaVersion":2,"annotations":{`)
			for i := range 1_000_000 {
				fmt.Fprintf(&b, `"%d":"",`, i)
			}
			return []byte(b.String() + `"a":""},"manifests":[]}`)
		})},
		{name: "a manifest nested 10,000 deep", code: "bundle-limit", make: child(v1.MediaTypeImageIndex, func() []byte {
			return []byte(strings.Repeat(`{"a":[`, 5000) + strings.Repeat(`]}`, 5000))
		})},
		{name: "a root of 1M descriptors", code: "bundle-limit", make: of(func(t *truth) error {
			return t.setRoot([]byte(`{"schemaVersion":2,"artifactType":"` + bundle.TypeRoot + `","manifests":[` + strings.Repeat("{},", 1_000_000) + `{}]}`))
		})},
		{name: "a lock of 15 MiB of small values", code: "bundle-document", make: of(func(t *truth) error {
			return t.setDocument(lockAt, []byte("images: ["+strings.Repeat("a,", 15<<19)+"a]\n"))
		})},
		{name: "a lock of aliases of aliases", code: "bundle-document", make: of(func(t *truth) error {
			text := "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n"
			for i := range 9 {
				text += fmt.Sprintf("a%d: &a%d [%s*a%d]\n", i+1, i+1, strings.Repeat(fmt.Sprintf("*a%d,", i), 9), i)
			}
			return t.setDocument(lockAt, []byte(text))
		})},
		{name: "a lock nested 100,000 deep", code: "bundle-document", make: of(func(t *truth) error {
			return t.setDocument(lockAt, []byte(strings.Repeat("[", 100_000)+"\n"))
		})},
		{name: "a summary of 1M values", code: "bundle-limit", make: of(func(t *truth) error {
			return t.setDocument(summaryAt, []byte(`{"a":[`+strings.Repeat("1,", 1_000_000)+"1]}"))
		})},
		{name: "an index.json of 2 MiB", code: "archive-limit", make: of(func(t *truth) error {
			t.index = append(bytes.Repeat([]byte(" "), 2<<20), t.index...)
			return nil
		})},
		{name: "a signature nested 100,000 deep", code: "archive-slot", make: of(func(t *truth) error {
			t.slot = slices.Clone(t.slot)
			copy(t.slot, `{"a":`+strings.Repeat("[", 100_000)+strings.Repeat("]", 100_000)+"}\n")
			return nil
		})},
	}
	for i := range sizes {
		sizes[i].group = "size"
	}
	return sizes
}

// bomb puts frames in place of a compressed blob's, and makes all that is said of
// them right.
func bomb(frames func() ([]byte, error)) func(*truth) ([]byte, error) {
	return func(t *truth) ([]byte, error) {
		p := t.pack()
		b, err := frames()
		if err != nil {
			return nil, err
		}
		p.first(true).frames = b
		return p.bytes()
	}
}

// compressed is data many times over, in as many frames.
func compressed(data []byte, times int) ([]byte, error) {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	return bytes.Repeat(e.EncodeAll(data, nil), times), e.Close()
}

// child adds a manifest or an index to the root.
func child(mediaType string, text func() []byte) func(*truth) ([]byte, error) {
	return of(func(t *truth) error {
		d := t.add(text(), true)
		d["mediaType"] = mediaType
		return t.editRoot(func(root document) { root["manifests"] = append(children(root), d) })
	})
}

func sized(size uint64) func(*truth) ([]byte, error) {
	return from(func(p *pack) {
		m := p.first(false)
		m.header = large(m.name, size)
	})
}

// large is a header with a size in base 256, as GNU writes large ones.
func large(name string, size uint64) []byte {
	return edited(name, 0, func(b []byte) {
		fill := byte(0x80)
		if size>>63 == 1 {
			fill = 0xff
		}
		for i := 124; i < 136; i++ {
			b[i] = 0
			if fill == 0xff {
				b[i] = fill
			}
		}
		b[124] = fill
		binary.BigEndian.PutUint64(b[128:], size)
	})
}
