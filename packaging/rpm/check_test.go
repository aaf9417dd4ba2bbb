package rpm

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/packaging"
)

func keysOf(t *testing.T, name string) Keys {
	t.Helper()
	b, err := os.ReadFile("testdata/keys/" + name + ".asc")
	if err != nil {
		t.Fatal(err)
	}
	k, err := ParseKeys(b)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// fileOf gives one of the packages in testdata/repo, and what the metadata says of it.
func fileOf(t *testing.T, name string) ([]byte, *packaging.Package) {
	t.Helper()
	m, err := Read(t.Context(), fixture(t), []Repository{signedRepository}, options)
	if err != nil {
		t.Fatal(err)
	}
	var p *packaging.Package
	m.each(func(e *entry) {
		if nevra(&e.Package) == name {
			p = &e.Package
		}
	})
	b, err := os.ReadFile(filepath.Join("testdata/repo", p.Location))
	if err != nil {
		t.Fatal(err)
	}
	return b, p
}

func TestCheck(t *testing.T) {
	signed, socat := fileOf(t, "socat-1.8.0.0-1~rc2.noarch")
	unsigned, chrony := fileOf(t, "chrony-4.5-1~rc2.noarch")
	for _, c := range []struct {
		name string
		file []byte
		p    *packaging.Package
		keys Keys
		want string
	}{
		{"signed", signed, socat, keysOf(t, "right"), ""},
		{"signed by one of two", signed, socat, Keys{append(keysOf(t, "other").list, keysOf(t, "right").list...)}, ""},
		{"no key given", signed, socat, Keys{}, ""},
		{"not signed, no key given", unsigned, chrony, Keys{}, ""},
		{"not signed", unsigned, chrony, keysOf(t, "right"), "chrony 4.5-1~rc2 (noarch): it is not signed"},
		{"another key", signed, socat, keysOf(t, "other"), "unknown entity"},
		{"another package", unsigned, pinned(unsigned, socat), Keys{}, "socat 1.8.0.0-1~rc2 (noarch): its header is of chrony 4.5-1~rc2 (noarch)"},
		{"another digest", changed(signed, len(signed)-3), socat, keysOf(t, "right"), "its checksum is "},
		{"cut", signed[:len(signed)-1], socat, keysOf(t, "right"), "bytes, expected"},
		{"longer", append(bytes.Clone(signed), 0), socat, keysOf(t, "right"), "it is longer than"},
		{"not an rpm file", []byte("hello"), pinned([]byte("hello"), socat), Keys{}, "it is not an rpm file"},
		{"empty", nil, pinned(nil, socat), Keys{}, "it is not an rpm file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := Check(bytes.NewReader(c.file), c.p, c.keys)
			if (c.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, not %s", err, c.want)
			}
		})
	}
}

// pinned gives p with a file's own size and digest.
func pinned(file []byte, p *packaging.Package) *packaging.Package {
	q := *p
	q.Size, q.SHA256 = int64(len(file)), fmt.Sprintf("%x", sha256.Sum256(file))
	return &q
}

func changed(file []byte, at int) []byte {
	file = bytes.Clone(file)
	file[at] ^= 1
	return file
}

// TestCheckFindsEveryChange changes each byte of header and payload, with a checksum
// that is right all the same: the signature alone has to find it.
func TestCheckFindsEveryChange(t *testing.T) {
	signed, socat := fileOf(t, "socat-1.8.0.0-1~rc2.noarch")
	keys := keysOf(t, "right")
	n := binary.BigEndian.Uint32(signed[96+8:])
	size := binary.BigEndian.Uint32(signed[96+12:])
	start := 96 + 16 + 16*int(n) + int(size+7)/8*8
	if !bytes.HasPrefix(signed[start:], []byte("\x8e\xad\xe8\x01")) {
		t.Fatal("the header is not where it should be")
	}
	for at := start; at < len(signed); at++ {
		file := changed(signed, at)
		if err := Check(bytes.NewReader(file), pinned(file, socat), keys); err == nil {
			t.Errorf("byte %d: no error", at)
		}
	}
}

// TestCheckAgainstLengths has headers claim to be long.
func TestCheckAgainstLengths(t *testing.T) {
	signed, socat := fileOf(t, "socat-1.8.0.0-1~rc2.noarch")
	for _, at := range []int{96 + 8, 96 + 12, 96 + 16 + 8, 96 + 16 + 12} {
		for _, n := range []uint32{0, 1 << 8, 1 << 16, 1 << 24, 1<<31 - 1, 1 << 31, 1<<32 - 1} {
			file := bytes.Clone(signed)
			binary.BigEndian.PutUint32(file[at:], n)
			for _, keys := range []Keys{{}, keysOf(t, "right")} {
				err := Check(bytes.NewReader(file), pinned(file, socat), keys)
				if err == nil && !keys.Empty() && !bytes.Equal(file, signed) && at < 96+16 {
					t.Errorf("%d at %d: no error", n, at)
				}
			}
		}
	}
}

func FuzzCheck(f *testing.F) {
	for _, name := range []string{"socat-1.8.0.0", "chrony-4.5"} {
		b, err := os.ReadFile("testdata/repo/" + name + "-1~rc2.noarch.rpm")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	key, err := os.ReadFile("testdata/keys/right.asc")
	if err != nil {
		f.Fatal(err)
	}
	keys, err := ParseKeys(key)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		p := &packaging.Package{Name: "socat", Version: "1.8.0.0-1~rc2", Arch: "noarch", SHA256: fmt.Sprintf("%x", sha256.Sum256(b)), Size: int64(len(b))}
		_ = Check(bytes.NewReader(b), p, keys)
	})
}

func FuzzKeys(f *testing.F) {
	b, err := os.ReadFile("testdata/keys/right.asc")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add(append(bytes.Clone(b), b...))
	f.Fuzz(func(t *testing.T, b []byte) {
		k, err := ParseKeys(b)
		if err == nil && k.Empty() {
			t.Error("no key and no error")
		}
	})
}

func FuzzMetadata(f *testing.F) {
	f.Add([]byte(fewPackages), []byte(`<filelists xmlns="`+filelistsSpace+`"><package pkgid="a"><file type="dir">/a</file></package></filelists>`),
		[]byte("document: modulemd\ndata:\n  name: a\n  stream: 1.10\n  artifacts:\n    rpms: [a-0:1-1.x86_64]\n---\ndocument: other\n"))
	f.Add([]byte(primaryOf(`a 1-1; <rpm:requires><rpm:entry name="(b or c)"/><rpm:entry name="d" flags="GE" ver="1"/></rpm:requires><file>/a</file>`)), []byte("<"), []byte("-"))
	f.Fuzz(func(t *testing.T, primary, filelists, modules []byte) {
		m := memory{}
		r := m.repository(t, "https://a.test", "none", map[string]string{"primary": string(primary), "filelists": string(filelists), "modules": string(modules)})
		got, err := Read(context.Background(), m, []Repository{r}, options)
		if err != nil {
			return
		}
		if _, _, err := got.Universe(); err != nil {
			t.Error(err)
		}
		var all []*packaging.Package
		got.each(func(e *entry) { all = append(all, &e.Package) })
		members, err := got.Members(all)
		if err != nil {
			return
		}
		files, err := Write(members, now)
		if err != nil {
			return
		}
		for _, f := range files {
			m["https://b.test/"+f.Path] = f.Content
		}
		again, err := Read(context.Background(), m, []Repository{{ID: "b", Bases: []string{"https://b.test"}}}, options)
		if err != nil {
			t.Fatalf("what was written is not read: %v", err)
		}
		n := 0
		again.each(func(*entry) { n++ })
		if n != len(all) {
			t.Errorf("%d packages were written, and %d are read", len(all), n)
		}
	})
}

func FuzzRepomd(f *testing.F) {
	b, err := os.ReadFile("testdata/repo/repodata/repomd.xml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		listed, err := readRepomd(b)
		for kind, x := range listed {
			if err == nil && (x.Sum.Kind == "" || checkLocation(x.Location) != nil) {
				t.Errorf("%s: %+v", kind, x)
			}
		}
	})
}
