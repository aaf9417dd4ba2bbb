package hostile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/bundle/archive"
	"github.com/mensylisir/kubexm/bundle/sign"
	"github.com/mensylisir/kubexm/manifest"
)

// truth is a bundle as its archive holds it.
type truth struct {
	layout, index []byte
	slot          []byte
	head          [][]byte // the root, the metadata, their documents
	blobs         []member // behind the slot

	maker, stranger *sign.Signer // whose key is trusted, and whose is not
	other           *truth       // the same maker's bundle for hosts of another platform
}

// readTruth takes an archive apart.
func readTruth(path string) (_ *truth, err error) {
	r, err := archive.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	t := &truth{slot: bytes.Repeat([]byte{' '}, slotSize)}
	lines, err := r.Signatures()
	if err != nil {
		return nil, err
	}
	copy(t.slot, lines)
	behind := false
	for _, m := range r.Members() {
		switch m.Name {
		case layoutName:
			t.layout, err = r.File(m.Name)
		case indexName:
			t.index, err = r.File(m.Name)
		case slotName:
			behind = true
		default:
			var data []byte
			if data, err = readBlob(r, m.Digest); behind {
				t.blobs = append(t.blobs, member{name: m.Name, data: data, compress: !m.Stored()})
			} else {
				t.head = append(t.head, data)
			}
		}
		if err != nil {
			return nil, err
		}
	}
	return t, nil
}

func readBlob(r *archive.Reader, digest string) ([]byte, error) {
	rc, _, err := r.Blob(digest)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(rc)
	return data, errors.Join(err, rc.Close())
}

// clone copies the lists, not the bytes.
func (t *truth) clone() *truth {
	c := *t
	c.head, c.blobs = slices.Clone(t.head), slices.Clone(t.blobs)
	return &c
}

// pack lays the bundle out as its builder does.
func (t *truth) pack() *pack {
	p := &pack{members: []member{{name: layoutName, data: t.layout}, {name: indexName, data: t.index}}}
	for _, b := range t.head {
		p.members = append(p.members, member{name: blobName(digestOf(b)), data: b})
	}
	p.members = append(p.members, member{name: slotName, data: t.slot})
	blobs := slices.Clone(t.blobs)
	slices.SortStableFunc(blobs, func(a, b member) int {
		if a.compress != b.compress {
			if b.compress {
				return -1
			}
			return 1
		}
		return strings.Compare(a.name, b.name)
	})
	p.members = append(p.members, blobs...)
	return p
}

// add puts a blob behind the slot, unless it is there.
func (t *truth) add(data []byte, compress bool) descriptor {
	d := descriptor{"digest": digestOf(data), "size": len(data)}
	name := blobName(digestOf(data))
	if !slices.ContainsFunc(t.blobs, func(m member) bool { return m.name == name }) {
		t.blobs = append(t.blobs, member{name: name, data: data, compress: compress})
	}
	return d
}

// descriptor and document are JSON with whatever is in it.
type (
	descriptor = map[string]any
	document   = map[string]any
)

func decode(text []byte) (document, error) {
	var d document
	e := json.NewDecoder(bytes.NewReader(text))
	e.UseNumber()
	return d, e.Decode(&d)
}

// encode is the form of documents that kubexm makes.
func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		return []byte(err.Error()) // no row takes what cannot be encoded; its code would be another one
	}
	return append(b, '\n')
}

// setRoot makes another root the bundle's. index.json has one form: nothing but the
// digest and the size in it change.
func (t *truth) setRoot(text []byte) error {
	old := t.head[0]
	t.head[0] = text
	index := bytes.Replace(t.index, []byte(digestOf(old)), []byte(digestOf(text)), 1)
	index = bytes.Replace(index, fmt.Appendf(nil, `"size":%d,`, len(old)), fmt.Appendf(nil, `"size":%d,`, len(text)), 1)
	if bytes.Equal(index, t.index) && !bytes.Equal(old, text) {
		return errors.New("index.json does not name the root that it had")
	}
	t.index = index
	return nil
}

// editRoot changes the root index.
func (t *truth) editRoot(change func(root document)) error {
	root, err := decode(t.head[0])
	if err != nil {
		return err
	}
	change(root)
	return t.setRoot(encode(root))
}

// children are the descriptors in a root.
func children(root document) []any {
	list, _ := root["manifests"].([]any)
	return list
}

// The places of documents in the head.
const (
	metadataAt = 1
	lockAt     = 3
	configAt   = 4
	summaryAt  = 5
)

// setDocument puts another lock, config or summary into the bundle, with every
// digest on the way to it made right.
func (t *truth) setDocument(at int, text []byte) error {
	old := digestOf(t.head[at])
	t.head[at] = text
	return t.editMetadata(func(m document) {
		layers, _ := m["layers"].([]any)
		for _, l := range layers {
			if d, _ := l.(map[string]any); d["digest"] == old {
				d["digest"], d["size"] = digestOf(text), len(text)
			}
		}
	})
}

// editMetadata changes the manifest of the lock, config and summary.
func (t *truth) editMetadata(change func(document)) error {
	m, err := decode(t.head[metadataAt])
	if err != nil {
		return err
	}
	change(m)
	return t.setMetadata(encode(m))
}

func (t *truth) setMetadata(text []byte) error {
	t.head[metadataAt] = text
	return t.editRoot(func(root document) {
		if d, _ := children(root)[0].(map[string]any); d != nil {
			d["digest"], d["size"] = digestOf(text), len(text)
		}
	})
}

// editLock changes the lock.
func (t *truth) editLock(change func(*manifest.Lock)) error {
	l, problems := manifest.DecodeLock(bytes.NewReader(t.head[lockAt]))
	if err := problems.Err(); err != nil {
		return err
	}
	change(l)
	text, err := manifest.EncodeLock(l)
	if err != nil {
		return err
	}
	return t.setDocument(lockAt, text)
}
