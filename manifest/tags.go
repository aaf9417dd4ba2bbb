package manifest

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

// checkTags holds a value against the tags of its field: enum, min, max, format.
func (w *walker) checkTags(n *yaml.Node, v reflect.Value, path string, tag reflect.StructTag) {
	switch v.Kind() {
	case reflect.String:
		s := v.String()
		if s == "" {
			return
		}
		if words := enumOf(tag); len(words) > 0 && !slices.Contains(words, s) {
			w.add(Error, n, path, fmt.Sprintf("%q is not one of %s", shown(s), strings.Join(words, ", ")), suggest(s, words))
			return
		}
		if f, ok := formats[tag.Get("format")]; ok {
			if advice := f.check(s); advice != "" {
				w.add(Error, n, path, fmt.Sprintf("%q is not valid here", shown(s)), advice)
			}
		}
	case reflect.Int, reflect.Int64:
		low, high := tag.Get("min"), tag.Get("max")
		if lo, err := strconv.ParseInt(low, 10, 64); err == nil && v.Int() < lo {
			w.add(Error, n, path, fmt.Sprintf("%d is below the least value %d", v.Int(), lo), bounds(low, high))
		}
		if hi, err := strconv.ParseInt(high, 10, 64); err == nil && v.Int() > hi {
			w.add(Error, n, path, fmt.Sprintf("%d is above the greatest value %d", v.Int(), hi), bounds(low, high))
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

func enumOf(tag reflect.StructTag) []string {
	if e := tag.Get("enum"); e != "" {
		return strings.Split(e, "|")
	}
	return nil
}

// words are those of a tag of a field of T: its enum's, or those that are built.
func words[T any](field, tag string) []string {
	f, _ := reflect.TypeFor[T]().FieldByName(field)
	return strings.Split(f.Tag.Get(tag), "|")
}

// nearest gives the candidate closest to word, if one is close.
func nearest(word string, candidates []string) string {
	if len(word) > 100 {
		return "" // the work grows with the length, and no name of ours is that long
	}
	best, distance := "", len(word)/3+2
	for _, c := range candidates {
		a, b := strings.ToLower(word), strings.ToLower(c)
		d := levenshtein.ComputeDistance(a, b)
		if min(len(a), len(b)) >= 4 && (strings.HasPrefix(a, b) || strings.HasPrefix(b, a)) {
			d = 1 // shortened, or written out
		}
		if d < distance {
			best, distance = c, d
		}
	}
	return best
}

// otherWords are what others call the values of an enum.
var otherWords = map[string]string{"x86_64": "amd64", "x64": "amd64", "aarch64": "arm64", "armv8": "arm64", "crio": "cri-o", "isula": "isulad"}

func suggest(word string, candidates []string) string {
	if n := otherWords[strings.ToLower(word)]; slices.Contains(candidates, n) {
		return "did you mean " + n + "?"
	}
	if n := nearest(word, candidates); n != "" {
		return "did you mean " + n + "?"
	}
	return "choose one of them"
}

// unknown reports a field that its mapping does not have, with the nearest that
// it has, or the place where a field of that name belongs.
//
// A key without a value between braces is often the rest of a value that has a
// comma: it is not shown, for the value may be a password.
func (w *walker) unknown(key *yaml.Node, path string, fields []field, rest bool) {
	if w.full() {
		w.more = true
		return
	}
	if key.Value == "<<" && key.Kind == yaml.ScalarNode {
		w.guessed[path] = true // what it would have brought is not missing
		w.add(Error, key, join(path, key.Value), "is a merge key, which is not read here", "write the fields out; what all hosts share stands in spec.ssh")
		return
	}
	if key.Kind != yaml.ScalarNode {
		w.add(Error, key, path, "has a key that is "+kindWord(key), "write a plain name")
		return
	}
	var names []string
	for _, f := range fields {
		names = append(names, f.name)
	}
	name, cut := nameOf(key)
	if cut && strings.HasPrefix(key.Value[len(name):], "：") {
		w.guessed[join(path, name)] = true
		w.add(Error, key, join(path, name), "is followed by a full-width colon ：", "write : and a space")
		return
	}
	advice := "its fields are " + strings.Join(names, ", ")
	if len(names) > 10 {
		advice = w.explain(path)
	}
	if n := nearest(name, names); n != "" {
		advice = "did you mean " + n + "?"
		if !w.full() {
			w.guessed[join(path, n)] = true
		}
	} else if elsewhere := homesOf(name); len(elsewhere) > 0 {
		advice = "that field belongs to " + strings.Join(elsewhere, " or ")
	}
	where := path
	if where == "" {
		where = "the document"
	}
	if rest && nearest(name, names) == "" {
		w.add(Error, key, path, "has a part without a colon", "write name: value, and put quotes around a value with a comma")
		return
	}
	if cut {
		advice = "write name: value, with a colon and a space; " + advice
	}
	w.add(Error, key, join(path, name), "is no field of "+where, advice)
}

// namePattern is the part of a key that can be a field's name.
var namePattern = regexp.MustCompile(`^[A-Za-z0-9_.<-]*`)

// nameOf gives the name that a key begins with. What comes after it, as where a
// colon is missing, is a value, and may be a password: cut tells that it is left out.
func nameOf(key *yaml.Node) (name string, cut bool) {
	name = namePattern.FindString(key.Value)
	return name, name != key.Value
}

// homesOf gives the mappings that do have a field of that name.
func homesOf(name string) []string {
	var out []string
	for _, f := range ConfigFields().All() {
		if parent := parentPath(f.Path); f.Name == name && parent != "" && !slices.Contains(out, parent) {
			out = append(out, parent)
		}
	}
	return out[:min(len(out), 3)]
}

// plainPath is path without indexes and map keys, as `config explain` takes it.
func plainPath(path string) string {
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

// FieldPaths lists every leaf field of a Cluster, as "spec.etcd.type".
func FieldPaths() []string {
	var out []string
	var walk func(t reflect.Type, path string)
	walk = func(t reflect.Type, path string) {
		for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice && t != argsType || t.Kind() == reflect.Map && t != anyMap {
			t = t.Elem()
		}
		if t.Kind() != reflect.Struct || t == secretType || reflect.PointerTo(t).Implements(textType) {
			out = append(out, path)
			return
		}
		for _, f := range fieldsOf(t) {
			walk(f.typ, join(path, f.name))
		}
	}
	walk(reflect.TypeFor[Cluster](), "")
	return out
}
