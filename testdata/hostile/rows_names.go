package hostile

import (
	"archive/tar"
	"bytes"
	"fmt"
	"strings"
)

// nameRows: names that lead out of the folder, that a terminal would obey, that
// fall together on some file systems, or that the format just does not know.
func nameRows() []row {
	hex := digestOf([]byte("b"))[len("sha256:"):]
	var all []row
	for _, c := range []struct{ what, name string }{
		{"../x", "../x"},
		{"/etc/x", "/etc/x"},
		{"a/../../x", "a/../../x"},
		{"blobs/sha256/../../x", "blobs/sha256/../../x"},
		{"backslash", `blobs\sha256\` + hex},
		{"NUL", "blobs/sha256/" + hex[:10] + "\x00" + hex[:53]},
		{"newline", "blobs/sha256/a\nb"},
		{"ANSI", "blobs/sha256/\x1b[2J\x1b]0;x\a"},
		{"empty", ""},
		{".", "."},
		{"1 MiB name", strings.Repeat("a", 1<<20)},
		{"depth 10k", strings.Repeat("a/", 10_000) + "x"},
		{"unicode collision", "ｉndex.json"},
		{"case collision", "INDEX.JSON"},
		{"trailing slash on a file", blobPrefix + hex + "/"},
		{"blobs/sha512", "blobs/sha512/" + hex + hex},
		{"upper-case hex", blobPrefix + strings.ToUpper(hex)},
	} {
		all = append(all, row{
			group: "names", name: c.what, code: "archive-name",
			make: from(func(p *pack) {
				p.insert(member{name: c.name, data: []byte("b"), header: namedHeader(c.name, 1), listed: listing(c.name, "b")})
			}),
		})
		if c.name == "" || len(c.name) > 100 {
			continue // the index takes such a place for an empty line, or a header of other length
		}
		all = append(all, row{
			group: "names", name: c.what + ", in the tar alone", code: "archive-header",
			make: from(func(p *pack) {
				m := p.first(false)
				m.header = namedHeader(c.name, int64(len(m.data)))
			}),
		})
	}
	return all
}

func listing(name, data string) *entry { return &entry{Name: name, Digest: digestOf([]byte(data))} }

// namedHeader is a tar header with a name as it is, after GNU's own way to say a long one.
func namedHeader(name string, size int64) []byte {
	b, err := tarHeader(layoutName, size)
	if err != nil {
		return nil
	}
	var long []byte
	if len(name) > 100 {
		long = edited(layoutName, int64(len(name)), func(b []byte) { b[156] = tar.TypeGNULongName })
		long = append(append(long, name...), make([]byte, -len(name)&511)...)
		name = name[:100]
	}
	clear(b[:100])
	copy(b[:100], name)
	return append(long, sealed(b)...)
}

// edited is a header with some of its bytes changed, and its checksum right.
func edited(name string, size int64, change func(b []byte)) []byte {
	b, err := tarHeader(name, size)
	if err != nil {
		return nil
	}
	change(b)
	return sealed(b)
}

// sealed makes a header's checksum right.
func sealed(b []byte) []byte {
	copy(b[148:156], "        ")
	sum := 0
	for _, c := range b {
		sum += int(c)
	}
	copy(b[148:156], fmt.Sprintf("%06o\x00 ", sum))
	return b
}

// header writes one as archive/tar does.
func header(h tar.Header) []byte {
	var b bytes.Buffer
	if err := tar.NewWriter(&b).WriteHeader(&h); err != nil {
		return []byte(err.Error()) // no header at all: another code comes of it
	}
	return b.Bytes()
}
