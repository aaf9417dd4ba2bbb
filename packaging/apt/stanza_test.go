package apt

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/mensylisir/kubexm/packaging"
)

const (
	someSum = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	file    = "Filename: pool/x.deb\nSize: 12\nSHA256: " + someSum + "\n"
)

func TestStanza(t *testing.T) {
	python := "Package: python3\nVersion: 3.11.2-1+b1\nArchitecture: amd64\nMulti-Arch: allowed\nPriority: optional\n" +
		"Provides: python3-profiler, python3-abi (= 3.11), other:arm64\n" +
		"Pre-Depends: python3-minimal (= 3.11.2-1+b1)\n" +
		"Depends: python3.11 (>= 3.11.2-1~) , libpython3-stdlib (= 3.11.2-1+b1)|x (<< 2)|y:native,\n perl:any, foo:arm64, bar:amd64\n" +
		"Conflicts: old (< 1), elsewhere:i386\nBreaks: any:any (>> 2)\nDescription: text\n Depends: not this\n .\n more\n" + file
	r := func(name string, op packaging.Operator, version string) packaging.Relation {
		return packaging.Relation{Name: name, Operator: op, Version: version}
	}
	one := func(rs ...packaging.Relation) packaging.Requirement { return packaging.Requirement{Any: rs} }
	want := &packaging.Package{
		Name: "python3", Version: "3.11.2-1+b1", Arch: "amd64",
		Provides: []packaging.Relation{
			r("python3-profiler", "", ""), r("python3-abi", "=", "3.11"),
			r("python3:any", "=", "3.11.2-1+b1"), r("python3-profiler:any", "", ""), r("python3-abi:any", "=", "3.11"),
		},
		Requires: []packaging.Requirement{
			one(r("python3-minimal", "=", "3.11.2-1+b1")), one(r("python3.11", ">=", "3.11.2-1~")),
			one(r("libpython3-stdlib", "=", "3.11.2-1+b1"), r("x", "<", "2"), r("y", "", "")),
			one(r("perl:any", "", "")), one(r("foo:arm64", "", "")), one(r("bar", "", "")),
		},
		Conflicts: []packaging.Relation{r("old", "<=", "1"), r("any", ">", "2")},
		Location:  "pool/x.deb", Size: 12, SHA256: someSum,
	}
	have, err := newStanzas("amd64").read([]byte(python))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, have.Package); d != "" {
		t.Error(d)
	}
}

func TestStanzaBase(t *testing.T) {
	for text, want := range map[string]bool{"Essential: yes\n": true, "Essential: no\n": false, "Priority: required\n": true, "Priority: important\n": false} {
		p, err := newStanzas("amd64").read([]byte("Package: a\nVersion: 1\nArchitecture: all\n" + text + file))
		if err != nil {
			t.Fatal(err)
		}
		if p.Base != want {
			t.Errorf("%q: base %v", text, p.Base)
		}
	}
}

func TestStanzaRefused(t *testing.T) {
	const head = "Package: a\nVersion: 1\nArchitecture: all\n"
	for text, want := range map[string]string{
		"Version: 1\nArchitecture: all\n" + file:                                           "no valid name",
		"Package: a\nArchitecture: all\n" + file:                                           "no valid name or version",
		"Package: a:any\nVersion: 1\nArchitecture: all\n" + file:                           "no valid name",
		head + "Filename: pool/x.deb\nSHA256: " + someSum + "\n":                           "size",
		head + "Filename: pool/x.deb\nSize: -4\nSHA256: " + someSum + "\n":                 "size",
		head + "Filename: pool/x.deb\nSize: 4\nMD5sum: d41d8cd98f00b204e9800998ecf8427e\n": "SHA256",
		head + "Filename: pool/x.deb\nSize: 4\nSHA256: " + someSum[2:] + "\n":              "SHA256",
		head + "Filename: ../../etc/passwd\nSize: 4\nSHA256: " + someSum + "\n":            "is not inside",
		head + "Filename: /etc/passwd\nSize: 4\nSHA256: " + someSum + "\n":                 "is not inside",
		head + file + "Depends: b (>= )\n":                                                 "not a valid package relation",
		head + file + "Depends: b (1.0)\n":                                                 "not a valid package relation",
		head + file + "Depends: b [amd64]\n":                                               "not a valid package relation",
		head + file + "Depends: b | | c\n":                                                 "is not a package name",
		head + file + "Depends: b c\n":                                                     "not a valid package relation",
		head + file + "Depends: ${misc:Depends}\n":                                         "is not a package name",
		head + file + "Conflicts: b | c\n":                                                 "not a valid package relation",
		" continued\n" + head + file:                                                       "is a continuation without a field",
		head + "no field\n" + file:                                                         "is not a field",
	} {
		_, err := newStanzas("amd64").read([]byte(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func TestStanzaOfAnotherArchitecture(t *testing.T) {
	p, err := newStanzas("amd64").read([]byte("Package: a\nVersion: 1\nArchitecture: arm64\n"))
	if p.Package != nil || err != nil {
		t.Errorf("%v, %v", p, err)
	}
}

func TestParagraphs(t *testing.T) {
	in := newParagraphs(strings.NewReader("\n \nA: 1\n\tmore\n\n\n# only\n\nB: 2\n# between\n C: 3\nD:\n 4"), 100)
	type one struct {
		First int
		Text  string
	}
	var have []one
	for {
		text, first, err := in.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		have = append(have, one{first, string(text)})
	}
	want := []one{{3, "A: 1\n\tmore\n"}, {7, "# only\n"}, {9, "B: 2\n# between\n C: 3\nD:\n 4"}}
	if d := cmp.Diff(want, have); d != "" {
		t.Error(d)
	}
	var fields []field
	err := eachField([]byte(want[2].Text), func(f field) error { fields = append(fields, f); return nil })
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]field{{[]byte("B"), []byte("2\n C: 3"), 0}, {[]byte("D"), []byte("\n 4"), 3}}, fields, cmp.AllowUnexported(field{})); d != "" {
		t.Error(d)
	}
	if string(have[2].Text) != want[2].Text {
		t.Error("reading the fields changed the text")
	}
}

func TestParagraphTooLong(t *testing.T) {
	_, _, err := newParagraphs(strings.NewReader("A: "+strings.Repeat("x", 1<<20)), 1<<19).next()
	if err == nil || !strings.Contains(err.Error(), "longer than 524288 bytes") {
		t.Error(err)
	}
}

func FuzzStanza(f *testing.F) {
	b, err := os.ReadFile("testdata/cut/Packages")
	if err != nil {
		f.Fatal(err)
	}
	for i, s := range bytes.SplitAfter(b, []byte("\n\n")) {
		if i < 20 {
			f.Add(s)
		}
	}
	f.Add([]byte("Package: a\nVersion: 1\nArchitecture: all\n" + file + "Depends: a:any (>= 1) | b,, c\nProvides: d (= 2)\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		before := bytes.Clone(b)
		in := newParagraphs(bytes.NewReader(b), most)
		for {
			text, _, err := in.next()
			if err != nil {
				break
			}
			p, err := newStanzas("amd64").read(text)
			if err != nil || p.Package == nil {
				continue
			}
			if !localPath(p.Location) || p.Size <= 0 || len(p.SHA256) != 64 || p.Name == "" || p.Version == "" {
				t.Errorf("%+v", p)
			}
			again, err := newStanzas("amd64").read(text)
			if d := cmp.Diff(p.Package, again.Package, cmpopts.EquateEmpty()); err != nil || d != "" {
				t.Error(err, d)
			}
		}
		if !bytes.Equal(before, b) {
			t.Error("reading changed the text")
		}
	})
}
