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

// Decode fills what into points to, each field by itself.
func (d *Document) Decode(into any) {
	w := &walker{Document: d}
	w.value(d.root, reflect.ValueOf(into).Elem(), "", "", 0)
}

// Required reports fields of what of points to that have to be written and are not. A
// struct that is not written at all asks for its fields too, unless it is optional as a
// whole.
func (d *Document) Required(of any) { d.required(reflect.ValueOf(of).Elem(), "") }

func (d *Document) required(v reflect.Value, path string) {
	if d.schema.whole(v.Type()) {
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

// reported tells whether an error about path stands already: about the field, a
// part of it, what holds it, or a misspelt name that may have meant it.
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

// Sound tells whether none of the fields has an error. A rule that holds fields
// against each other asks first: of two problems with one cause the second only
// leads astray.
func (d *Document) Sound(paths ...string) bool { return !slices.ContainsFunc(paths, d.reported) }

// Fail reports an error at the place of path, unless there is one already: the
// first is the cause, the second at best says it in other words.
func (d *Document) Fail(path, advice, format string, args ...any) {
	if d.Sound(path) {
		d.Add(Error, d.Place(path), path, fmt.Sprintf(format, args...), advice)
	}
}

// Warn reports a warning at the place of path, unless there is an error.
func (d *Document) Warn(path, advice, format string, args ...any) {
	if d.Sound(path) {
		d.Add(Warning, d.Place(path), path, fmt.Sprintf(format, args...), advice)
	}
}

// Explain is the advice to read about the field at path.
func (d *Document) Explain(path string) string {
	if d.full() || d.schema.Explain == nil {
		return "" // nobody will read it
	}
	return d.schema.Explain(path)
}

// homes lists the mappings that have a field of a name.
func (d *Document) homes(name string) []string {
	if d.schema.Homes == nil {
		return nil
	}
	return d.schema.Homes(name)
}

// howTo is the advice on a field that is not written.
func (d *Document) howTo(f Key, path string) string {
	if format, ok := d.schema.Formats[f.Tag.Get("format")]; ok {
		return format.Words
	}
	if words := Enum(f.Tag); len(words) > 0 {
		return "write one of " + strings.Join(words, ", ")
	}
	return d.Explain(path)
}

// Place gives the node of path, or of the nearest mapping around it that is written.
func (d *Document) Place(path string) *yaml.Node {
	for path != "" {
		if n, ok := d.places[path]; ok {
			return n
		}
		path = Parent(path)
	}
	return d.root
}

// FirstWritten gives, for each field that the document holds, its first place,
// whatever list it lies in. Fields are by their paths without indexes, see Plain.
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

// SetDefaults fills fields of what of points to that are not written from their tags.
// A field that is written keeps what was written, also when that is zero or false.
func (d *Document) SetDefaults(of any) { d.setDefaults(reflect.ValueOf(of).Elem(), "") }

func (d *Document) setDefaults(v reflect.Value, path string) {
	if d.schema.whole(v.Type()) {
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

// isEmptyText tells whether v is a text or a list: an empty one of these says
// nothing, where zero and false do.
func isEmptyText(v reflect.Value) bool {
	return v.Kind() == reflect.String || v.Kind() == reflect.Slice
}

// setText sets v from the text of a default tag. The tags are fixed with the
// program, and a test reads every one of them.
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
