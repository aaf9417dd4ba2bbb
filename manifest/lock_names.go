package manifest

import (
	"fmt"
	"io/fs"
	"reflect"
	"regexp"
	"strings"
	"unicode"
)

// Names in a lock become file names, command arguments and terminal output. kubexm writes only
// names that match these patterns; other names may be an attack.
var (
	packageWanted = regexp.MustCompile(`^[A-Za-z0-9/][A-Za-z0-9+._:~=*/-]*$`)
	packageNamed  = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9+._~^: ()-]*$`)
)

// pathElement reports whether s is a valid name of one file or folder on every operating
// system.
func pathElement(s string) bool { return s != "." && filePath(s) && !strings.Contains(s, "/") }

// filePath reports whether s is a valid path below a folder.
func filePath(s string) bool { return s != "." && fs.ValidPath(s) && !strings.Contains(s, `\`) }

// checkNames finds names of an artifact that leave their folder or contain shell
// metacharacters.
func (a Artifact) checkNames(path string, bad func(path, format string, args ...any)) {
	for _, x := range []struct{ field, value string }{{"name", a.Name}, {"version", a.Version}} {
		if x.value != "" && !pathElement(x.value) {
			bad(path+"."+x.field, "%q is not a valid folder name", x.value)
		}
	}
	if a.Chart != nil && (!pathElement(a.Chart.Name) || !pathElement(a.Chart.Version)) {
		bad(path+".chart", "%q %q is not a valid file name", a.Chart.Name, a.Chart.Version)
	}
	for _, b := range a.Blobs() {
		if !filePath(b.Name) {
			bad(path, "%q is not a valid file name", b.Name)
		}
	}
	if a.Packages == nil {
		return
	}
	for i, want := range a.Packages.Want {
		for any := range strings.SplitSeq(want, "|") {
			if !packageWanted.MatchString(strings.TrimSpace(any)) {
				bad(fmt.Sprintf("%s.packages.want[%d]", path, i), "%q is not a valid package name", want)
			}
		}
	}
	for i, m := range a.Members {
		if m.Package != "" && !packageNamed.MatchString(m.Package) {
			bad(fmt.Sprintf("%s.members[%d].package", path, i), "%q is not a valid package name, version and architecture", m.Package)
		}
	}
}

// checkText finds strings below v with control characters, which a terminal would interpret.
// Line breaks and tabs are allowed: the record of a package has several lines.
func checkText(path string, v reflect.Value, bad func(path, format string, args ...any)) {
	switch v.Kind() {
	case reflect.String:
		if i := strings.IndexFunc(v.String(), func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }); i >= 0 {
			bad(path, "%.40q has a control character", v.String()[i:])
		}
	case reflect.Pointer:
		if !v.IsNil() {
			checkText(path, v.Elem(), bad)
		}
	case reflect.Slice:
		for i := range v.Len() {
			checkText(fmt.Sprintf("%s[%d]", path, i), v.Index(i), bad)
		}
	case reflect.Map:
		for _, k := range v.MapKeys() {
			checkText(path, k, bad)
			checkText(path, v.MapIndex(k), bad)
		}
	case reflect.Struct:
		t := v.Type()
		for i := range t.NumField() {
			if !t.Field(i).IsExported() {
				continue
			}
			name, _, _ := strings.Cut(t.Field(i).Tag.Get("yaml"), ",")
			checkText(strings.TrimPrefix(path+"."+name, "."), v.Field(i), bad)
		}
	default: // numbers and booleans
	}
}
