package document

import (
	"fmt"
	"strconv"
	"strings"
)

// Indexed returns the path of an entry of a list.
func Indexed(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }

// Join returns the path of a field of a mapping. Names with special characters are quoted in
// brackets.
func Join(path, name string) string {
	if path == "" {
		return name
	}
	if strings.ContainsAny(name, ".[]/ ") {
		return path + "[" + strconv.Quote(name) + "]"
	}
	return path + "." + name
}

// Parent returns the path of the mapping or list that contains path.
func Parent(path string) string {
	if strings.HasSuffix(path, "]") {
		return path[:strings.LastIndexByte(path, '[')]
	}
	i := strings.LastIndexByte(path, '.')
	return path[:max(i, 0)]
}

// AsWritten returns path in the spelling of the document.
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

// within reports whether path is top or below it. No path is below "", the document itself: an
// error about the document is not an error about every field.
func within(path, top string) bool {
	rest, ok := strings.CutPrefix(path, top)
	return ok && top != "" && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// Plain returns path without indexes and map keys, as `config explain` accepts it.
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
