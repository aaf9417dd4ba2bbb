package hostile

import (
	"archive/tar"
	"slices"
	"time"
)

// typeRows: members that are no regular files, or more than that.
func typeRows() []row {
	epoch := time.Unix(0, 0)
	link := func(to string) func(string, int64) []byte {
		return func(name string, _ int64) []byte {
			return header(tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: to, Mode: 0o644, ModTime: epoch, Format: tar.FormatGNU})
		}
	}
	hard := func(to string) func(string, int64) []byte {
		return func(name string, _ int64) []byte {
			return header(tar.Header{Typeflag: tar.TypeLink, Name: name, Linkname: to, Mode: 0o644, ModTime: epoch, Format: tar.FormatGNU})
		}
	}
	typed := func(c byte) func(string, int64) []byte {
		return func(name string, size int64) []byte { return edited(name, size, func(b []byte) { b[156] = c }) }
	}
	var all []row
	for _, c := range []struct {
		what   string
		header func(name string, size int64) []byte
	}{
		{"absolute symlink", link("/etc/passwd")},
		{"relative symlink", link("../../../../x")},
		{"in-root symlink", link("../../oci-layout")},
		{"hard link relative to the working directory", hard("x")},
		{"hard link to a blob", hard(layoutName)},
		{"character device", typed(tar.TypeChar)},
		{"block device", typed(tar.TypeBlock)},
		{"FIFO", typed(tar.TypeFifo)},
		{"directory", typed(tar.TypeDir)},
		{"setuid bits", func(name string, size int64) []byte {
			return header(tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o6755, ModTime: epoch, Format: tar.FormatGNU})
		}},
		{"GNU sparse", typed(tar.TypeGNUSparse)},
		{"unknown typeflag", typed('?')},
	} {
		all = append(all, row{
			group: "types", name: c.what, code: "archive-header",
			make: from(func(p *pack) {
				m := p.first(false)
				m.header = c.header(m.name, int64(len(m.data)))
			}),
		})
	}
	pax := func(record string) func(*truth) ([]byte, error) {
		return from(func(p *pack) {
			m := p.first(false)
			m.header = slices.Concat(edited(m.name, int64(len(record)), func(b []byte) { b[156] = tar.TypeXHeader }),
				append([]byte(record), make([]byte, 512-len(record))...), edited(m.name, int64(len(m.data)), func([]byte) {}))
		})
	}
	return append(all,
		row{group: "types", name: "chained symlinks", code: "archive-header", make: from(func(p *pack) {
			a, b := p.first(false), p.first(true)
			a.header, b.header = link(b.name)(a.name, 0), link("/etc")(b.name, 0)
		})},
		row{group: "types", name: "symlink then a file through it", code: "archive-name", make: from(func(p *pack) {
			p.insert(member{name: "blobs/l", header: link("/tmp")("blobs/l", 0)}, member{name: "blobs/l/x", data: []byte("x")})
		})},
		row{group: "types", name: "symlink that the index does not list", code: "archive-index", make: from(func(p *pack) {
			p.insert(member{name: "blobs/l", header: link("/tmp")("blobs/l", 0), secret: true})
		})},
		row{group: "types", name: "PAX size override", code: "archive-index", make: pax("15 size=999999\n")},
		row{group: "types", name: "PAX path override", code: "archive-index", make: pax("22 path=../../../../x\n")},
	)
}
