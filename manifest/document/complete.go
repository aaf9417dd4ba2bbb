package document

import (
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Decode decodes the document into the value that into points to, each field independently.
func (d *Document) Decode(into any) {
	w := &walker{Document: d}
	w.value(d.root, reflect.ValueOf(into).Elem(), "", "", 0)
}

// Required adds an error for each required field that is not set in the value that of points
// to. The fields of a struct that the document does not contain are checked too, unless the
// struct itself is optional (a pointer, or an entry of a list or mapping).
func (d *Document) Required(of any) { d.required(reflect.ValueOf(of).Elem(), "") }

func (d *Document) required(v reflect.Value, path string) {
	if d.schema.opaque(v.Type()) {
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for _, f := range Keys(v.Type()) {
			at := Join(path, f.Name)
			fv := v.FieldByIndex(f.Index)
			if f.Tag.Get("required") == "true" && fv.IsZero() && !d.reported(at) {
				message := "is missing"
				if d.written[at] {
					message = "is empty"
				}
				d.Add(Error, d.Place(at), at, message, d.howTo(f, at))
			}
			d.required(fv, at)
		}
	case reflect.Slice:
		for i := range v.Len() {
			d.required(v.Index(i), Indexed(path, i))
		}
	case reflect.Pointer:
		if !v.IsNil() {
			d.required(v.Elem(), path)
		}
	}
}

// reported reports whether there is already an error about path: about the field, a field
// below it, an enclosing field, or a misspelt name that may mean it.
func (d *Document) reported(path string) bool {
	for _, p := range d.problems {
		if p.Severity == Error && (within(p.Path, path) || within(path, p.Path)) {
			return true
		}
	}
	for g := range d.guessed {
		if within(path, g) {
			return true
		}
	}
	return false
}

// Valid reports whether none of the fields has an error. Rules that check fields against each
// other call it first: a second problem with the same cause would be misleading.
func (d *Document) Valid(paths ...string) bool { return !slices.ContainsFunc(paths, d.reported) }

// Fail adds an error at the place of path, unless the field already has one.
func (d *Document) Fail(path, advice, format string, args ...any) {
	if d.Valid(path) {
		d.Add(Error, d.Place(path), path, fmt.Sprintf(format, args...), advice)
	}
}

// Warn adds a warning at the place of path, unless the field has an error.
func (d *Document) Warn(path, advice, format string, args ...any) {
	if d.Valid(path) {
		d.Add(Warning, d.Place(path), path, fmt.Sprintf(format, args...), advice)
	}
}

// Explain returns the advice to read about the field at path.
func (d *Document) Explain(path string) string {
	if d.full() || d.schema.Explain == nil {
		return "" // a full document drops the problem
	}
	return d.schema.Explain(path)
}

// homes lists the mappings that have a field of a name.
func (d *Document) homes(name string) []string {
	if d.schema.MappingsWith == nil {
		return nil
	}
	return d.schema.MappingsWith(name)
}

// howTo returns the advice for a required field that is not set.
func (d *Document) howTo(f Key, path string) string {
	if format, ok := d.schema.Formats[f.Tag.Get("format")]; ok {
		return format.Words
	}
	if words := Enum(f.Tag); len(words) > 0 {
		return "write one of " + strings.Join(words, ", ")
	}
	return d.Explain(path)
}

// Place returns the node of path, or the node of the nearest enclosing field in the document.
func (d *Document) Place(path string) *yaml.Node {
	for path != "" {
		if n, ok := d.places[path]; ok {
			return n
		}
		path = Parent(path)
	}
	return d.root
}

// FirstWritten returns the first occurrence of each field in the document. Keys are paths
// without indexes, see Plain; values are paths with indexes.
func (d *Document) FirstWritten() map[string]string {
	first := map[string]string{}
	for path := range d.written {
		field := Plain(path)
		old, ok := first[field]
		if !ok || before(d.places[path], d.places[old]) || !before(d.places[old], d.places[path]) && path < old {
			first[field] = path
		}
	}
	return first
}

func before(a, b *yaml.Node) bool { return a.Line < b.Line || a.Line == b.Line && a.Column < b.Column }

// SetDefaults sets fields that are not in the document to the defaults in their tags, in the
// value that of points to. A field in the document keeps its value, including 0 and false.
func (d *Document) SetDefaults(of any) { d.setDefaults(reflect.ValueOf(of).Elem(), "") }

func (d *Document) setDefaults(v reflect.Value, path string) {
	if d.schema.opaque(v.Type()) {
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for _, f := range Keys(v.Type()) {
			at := Join(path, f.Name)
			fv := v.FieldByIndex(f.Index)
			if def, ok := f.Tag.Lookup("default"); ok && fv.IsZero() && (!d.written[at] || isEmptyText(fv)) {
				setText(fv, def)
			}
			d.setDefaults(fv, at)
		}
	case reflect.Slice:
		for i := range v.Len() {
			d.setDefaults(v.Index(i), Indexed(path, i))
		}
	case reflect.Pointer:
		if !v.IsNil() && v.Elem().Kind() == reflect.Struct {
			d.setDefaults(v.Elem(), path)
		}
	}
}

// isEmptyText reports whether v is a text or a list. An empty text or list means not set, while
// 0 and false are values.
func isEmptyText(v reflect.Value) bool {
	return v.Kind() == reflect.String || v.Kind() == reflect.Slice
}

// setText sets v from the text of a default tag. It ignores invalid texts: a test checks all
// default tags.
func setText(v reflect.Value, text string) {
	switch {
	case v.Kind() == reflect.Pointer:
		p := reflect.New(v.Type().Elem())
		setText(p.Elem(), text)
		v.Set(p)
	case v.CanAddr() && v.Addr().Type().Implements(textType):
		p := reflect.New(v.Type())
		if u, ok := p.Interface().(encoding.TextUnmarshaler); ok && u.UnmarshalText([]byte(text)) == nil {
			v.Set(p.Elem())
		}
	case v.Kind() == reflect.String:
		v.SetString(text)
	case v.Kind() == reflect.Bool:
		v.SetBool(text == "true")
	case v.Kind() == reflect.Int || v.Kind() == reflect.Int64:
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			v.SetInt(n)
		}
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.String:
		for part := range strings.SplitSeq(text, ",") {
			v.Set(reflect.Append(v, reflect.ValueOf(part).Convert(v.Type().Elem())))
		}
	}
}
