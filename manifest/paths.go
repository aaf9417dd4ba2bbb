package manifest

import (
	"fmt"
	"strconv"
	"strings"
)

func indexed(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }

func join(path, name string) string {
	if path == "" {
		return name
	}
	if strings.ContainsAny(name, ".[]/ ") {
		return path + "[" + strconv.Quote(name) + "]"
	}
	return path + "." + name
}

// parentPath gives the path of what holds path.
func parentPath(path string) string {
	if strings.HasSuffix(path, "]") {
		return path[:strings.LastIndexByte(path, '[')]
	}
	i := strings.LastIndexByte(path, '.')
	return path[:max(i, 0)]
}

// asWritten gives path in the spelling that the document has of it.
func (d *document) asWritten(path string) string {
	if from, ok := d.made[path]; ok {
		return from
	}
	for top := path; top != ""; top = parentPath(top) {
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
