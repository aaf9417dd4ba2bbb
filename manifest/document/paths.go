package document

import (
	"fmt"
	"strconv"
	"strings"
)

// Indexed gives the path of an entry of a list.
func Indexed(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }

// Join gives the path of a field of a mapping. A name that no field of ours has is quoted.
func Join(path, name string) string {
	if path == "" {
		return name
	}
	if strings.ContainsAny(name, ".[]/ ") {
		return path + "[" + strconv.Quote(name) + "]"
	}
	return path + "." + name
}

// Parent gives the path of what holds path.
func Parent(path string) string {
	if strings.HasSuffix(path, "]") {
		return path[:strings.LastIndexByte(path, '[')]
	}
	i := strings.LastIndexByte(path, '.')
	return path[:max(i, 0)]
}

// AsWritten gives path in the spelling that the document has of it.
func (d *Document) AsWritten(path string) string {
	if from, ok := d.made[path]; ok {
		return from
	}
	for top := path; top != ""; top = Parent(top) {
		if from, ok := d.moved[top]; ok {
			return from + path[len(top):]
		}
	}
	return path
}

// within tells whether path is top or lies under it. Nothing lies under the
// document itself here: an error about it is not one about every field.
func within(path, top string) bool {
	rest, ok := strings.CutPrefix(path, top)
	return ok && top != "" && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// Plain is path without indexes and map keys, as `config explain` takes it.
func Plain(path string) string {
	var b strings.Builder
	depth := 0
	for _, r := range path {
		switch {
		case r == '[':
			depth++
		case r == ']':
			depth--
		case depth == 0:
			b.WriteRune(r)
		}
	}
	return b.String()
}
