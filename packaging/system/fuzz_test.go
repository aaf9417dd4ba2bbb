package system

import (
	"context"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/packaging"
	"github.com/mensylisir/kubexm/packaging/rpm"
)

var (
	packageField  = regexp.MustCompile(`(?mi)^package:`)
	filenameField = regexp.MustCompile(`(?mi)^filename:`)
)

// FuzzMetadata writes repositories from a lock that may be anybody's. What is written
// has the packages that the lock names, however a record is written, and no others.
func FuzzMetadata(f *testing.F) {
	f.Add("deb", "socat 1 (all)", "pool/socat.deb", "Package: socat\nVersion: 1\nArchitecture: all\nDescription: x\n y\n", int64(3))
	f.Add("deb", "socat 1 (all)", "pool/socat.deb", "Package: socat\nVersion: 1\nArchitecture: all\nX:\n \t\n y\n\nPackage: b\n", int64(3))
	f.Add("rpm", "socat 1-1 (noarch)", "Packages/socat.rpm", record, int64(3))
	f.Add("rpm", "socat 1-1 (noarch)", "Packages/socat.rpm", record+record, int64(3))
	f.Add("rpm", "socat 1-1 (noarch)", "Packages/socat.rpm", strings.Replace(record, "<format>", "</package><package><!-- -->", 1), int64(3))
	f.Fuzz(func(t *testing.T, format, name, path, text string, size int64) {
		a := manifest.Artifact{ID: "x", Platform: bookworm, Packages: &manifest.PackageSet{Format: format, Date: then}, Members: []manifest.Member{
			{Path: path, Name: path, Size: size, SHA256: strings.Repeat("a", 64), Package: name, Address: "https://x.test", Record: text},
			{Path: "Release"},
		}}
		files, err := Metadata(a)
		if err != nil || name == "" {
			return
		}
		if format == manifest.Deb {
			index := string(files[0].Content)
			if len(packageField.FindAllString(index, -1)) != 1 || len(filenameField.FindAllString(index, -1)) != 1 || strings.Contains(index, "\n\n") {
				t.Errorf("%q", index)
			}
			return
		}
		dir := t.TempDir()
		for _, f := range files {
			write(t, filepath.Join(dir, f.Path), string(f.Content))
		}
		arch := name[strings.LastIndexByte(name, '(')+1 : len(name)-1]
		m, err := rpm.Read(context.Background(), folders{"https://x.test": dir}, []rpm.Repository{{ID: "x", Bases: []string{"https://x.test"}}}, rpm.Options{Arch: arch, Now: then})
		if err != nil {
			t.Fatalf("what was written is not read: %v\n%s", err, files[0].Content)
		}
		u, _, err := m.Universe()
		if err != nil {
			t.Fatal(err)
		}
		word, _, _ := strings.Cut(name, " ")
		found := u.Find(packaging.Relation{Name: word, Own: true})
		if len(found) != 1 || found[0].String() != name || strings.Count(string(files[0].Content), "</package>") != 1 {
			t.Errorf("%s, and not %s\n%s", found, name, files[0].Content)
		}
	})
}

// record is what metadata says of a package.
var record = `<package type="rpm"><name>socat</name><arch>noarch</arch><version epoch="0" ver="1" rel="1"/>` +
	`<checksum type="sha256" pkgid="YES">` + strings.Repeat("a", 64) + `</checksum><size package="3"/><location href="Packages/socat.rpm"/>` +
	`<format><rpm:requires><rpm:entry name="/bin/sh"/></rpm:requires><file type="dir">/a&amp;b</file></format></package>`
