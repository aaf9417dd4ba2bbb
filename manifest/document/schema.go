package document

import (
	"encoding"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Schema is what the types of a kind of document do not say themselves.
type Schema struct {
	Name  string // what a document of the kind is called: "config"
	Start string // the advice where there is none yet
	Merge string // the advice where a merge key is written

	Formats map[string]Format // shapes of text, by the word of the tag format
	Words   map[string]string // what others call the values of enums, in lower case

	// Types are read by functions of their own; they hold no fields.
	Types map[reflect.Type]Read
	// Short are mappings that may be written as a plain value, which the function reads.
	Short map[reflect.Type]Read

	// Explain is the advice to read about the field at a path, "" for none.
	Explain func(path string) string
	// Homes lists the mappings that have a field of a name; nil for none.
	Homes func(name string) []string
}

// Read decodes n into v, which lies at path, and reports what is wrong with it.
type Read func(d *Document, n *yaml.Node, v reflect.Value, path string)

// Format is a shape of text fields.
type Format struct {
	Words string                         // what to write, as advice
	Check func(s string) (advice string) // "" when s is right, else what to do
}

// Key is one field that a mapping may hold, with inlined structs unfolded.
type Key struct {
	Name  string // in the document
	Tag   reflect.StructTag
	Index []int // for reflect.Value.FieldByIndex
	Type  reflect.Type
	Owner reflect.Type // the struct that declares it
}

// Keys lists the fields that a mapping may hold: those of struct t with a tag yaml.
func Keys(t reflect.Type) []Key {
	var out []Key
	for i := range t.NumField() {
		f := t.Field(i)
		name, opts, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		switch {
		case strings.Contains(opts, "inline"):
			for _, in := range Keys(f.Type) {
				in.Index = append([]int{i}, in.Index...)
				out = append(out, in)
			}
		case name != "" && name != "-" && f.IsExported():
			out = append(out, Key{Name: name, Tag: f.Tag, Index: []int{i}, Type: f.Type, Owner: t})
		}
	}
	return out
}

// Enum lists the values that a tag allows; nil where it allows all.
func Enum(tag reflect.StructTag) []string {
	if e := tag.Get("enum"); e != "" {
		return strings.Split(e, "|")
	}
	return nil
}

var (
	textType = reflect.TypeFor[encoding.TextUnmarshaler]()
	anyMap   = reflect.TypeFor[map[string]any]()
)

// whole tells a type that holds no fields of its own: it reads itself.
func (s *Schema) whole(t reflect.Type) bool {
	return s.Types[t] != nil || reflect.PointerTo(t).Implements(textType)
}
