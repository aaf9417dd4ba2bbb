package document

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/agnivade/levenshtein"
	"go.yaml.in/yaml/v3"
)

// checkTags checks a value against the tags of its field: enum, min, max, format.
func (w *walker) checkTags(n *yaml.Node, v reflect.Value, path string, tag reflect.StructTag) {
	switch v.Kind() {
	case reflect.String:
		s := v.String()
		if s == "" {
			return
		}
		if words := Enum(tag); len(words) > 0 && !slices.Contains(words, s) {
			w.Add(Error, n, path, fmt.Sprintf("%q is not one of %s", Redact(s), strings.Join(words, ", ")), w.Suggest(s, words))
			return
		}
		if f, ok := w.schema.Formats[tag.Get("format")]; ok {
			if advice := f.Check(s); advice != "" {
				w.Add(Error, n, path, fmt.Sprintf("%q is not valid", Redact(s)), advice)
			}
		}
	case reflect.Int, reflect.Int64:
		low, high := tag.Get("min"), tag.Get("max")
		if lo, err := strconv.ParseInt(low, 10, 64); err == nil && v.Int() < lo {
			w.Add(Error, n, path, fmt.Sprintf("%d is less than the minimum %d", v.Int(), lo), bounds(low, high))
		}
		if hi, err := strconv.ParseInt(high, 10, 64); err == nil && v.Int() > hi {
			w.Add(Error, n, path, fmt.Sprintf("%d is greater than the maximum %d", v.Int(), hi), bounds(low, high))
		}
	}
}

func bounds(low, high string) string {
	switch {
	case low != "" && high != "":
		return "write a number from " + low + " to " + high
	case low != "":
		return "write a number of " + low + " or more"
	}
	return "write a number of at most " + high
}

// Nearest returns the candidate closest to word, or "" if none is close.
func Nearest(word string, candidates []string) string {
	if len(word) > 100 {
		return "" // the cost grows with the length, and no field has such a long name
	}
	best, distance := "", len(word)/3+2
	for _, c := range candidates {
		a, b := strings.ToLower(word), strings.ToLower(c)
		d := levenshtein.ComputeDistance(a, b)
		if min(len(a), len(b)) >= 4 && (strings.HasPrefix(a, b) || strings.HasPrefix(b, a)) {
			d = 1 // an abbreviation, or the full form of one
		}
		if d < distance {
			best, distance = c, d
		}
	}
	return best
}

// Suggest returns the advice for a word that is not a value of an enum.
func (d *Document) Suggest(word string, candidates []string) string {
	if n := d.schema.Words[strings.ToLower(word)]; slices.Contains(candidates, n) {
		return "did you mean " + n + "?"
	}
	if n := Nearest(word, candidates); n != "" {
		return "did you mean " + n + "?"
	}
	return "choose one of them"
}

// unknown adds an error for an unknown field. The advice is the nearest field of the mapping, or
// the mappings that have a field with this name.
//
// rest means that the key is in a flow mapping and has no value. It is then often the rest of a
// value with a comma. It is not shown, because the value may be a password.
func (w *walker) unknown(key *yaml.Node, path string, fields []Key, rest bool) {
	if w.full() {
		w.more = true
		return
	}
	if key.Value == "<<" && key.Kind == yaml.ScalarNode {
		w.guessed[path] = true // do not report the fields of the merged mapping as missing
		w.Add(Error, key, Join(path, key.Value), "is a YAML merge key, which is not supported", w.schema.Merge)
		return
	}
	if key.Kind != yaml.ScalarNode {
		w.Add(Error, key, path, "has a key that is "+KindOf(key), "write a plain name")
		return
	}
	var names []string
	for _, f := range fields {
		names = append(names, f.Name)
	}
	name, cut := nameOf(key)
	if cut && strings.HasPrefix(key.Value[len(name):], "：") {
		w.guessed[Join(path, name)] = true
		w.Add(Error, key, Join(path, name), "is followed by a full-width colon ：", "write : and a space")
		return
	}
	advice := "the fields are " + strings.Join(names, ", ")
	if len(names) > 10 {
		advice = w.Explain(path)
	}
	if n := Nearest(name, names); n != "" {
		advice = "did you mean " + n + "?"
		if !w.full() {
			w.guessed[Join(path, n)] = true
		}
	} else if elsewhere := w.homes(name); len(elsewhere) > 0 {
		advice = "that field belongs to " + strings.Join(elsewhere, " or ")
	}
	where := path
	if where == "" {
		where = "the document"
	}
	if rest && Nearest(name, names) == "" {
		w.Add(Error, key, path, "has a part without a colon", "write name: value, and put quotes around a value with a comma")
		return
	}
	if cut {
		advice = "write name: value, with a colon and a space; " + advice
	}
	w.Add(Error, key, Join(path, name), "is not a field of "+where, advice)
}

// namePattern matches the part of a key that can be the name of a field.
var namePattern = regexp.MustCompile(`^[A-Za-z0-9_.<-]*`)

// nameOf returns the name at the beginning of a key. If a colon is missing, the rest of the key
// is a value and may be a password. cut reports that there is such a rest.
func nameOf(key *yaml.Node) (name string, cut bool) {
	name = namePattern.FindString(key.Value)
	return name, name != key.Value
}
