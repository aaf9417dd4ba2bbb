package chart

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// leaves says of a failed validation what a person can act on: each value that
// is wrong, and not the rules that led to it.
func (e *ValuesError) leaves(schema string, v *jsonschema.ValidationError, at []string) {
	path := append(slices.Clone(at), v.InstanceLocation...)
	switch k := v.ErrorKind.(type) {
	case *kind.AnyOf:
		e.add(schema, whole(path), alternatives(v))
	case *kind.OneOf:
		if len(k.Subschemas) > 0 {
			e.add(schema, whole(path), "fits several forms, of which the chart takes only one at once")
			return
		}
		e.add(schema, whole(path), alternatives(v))
	case *kind.Required:
		for _, name := range k.Missing {
			e.add(schema, whole(append(slices.Clone(path), name)), "is missing")
		}
	case *kind.AdditionalProperties:
		for _, name := range k.Properties {
			e.add(schema, whole(append(slices.Clone(path), name)), "is nothing that the chart knows")
		}
	case *kind.FalseSchema, *kind.Not:
		e.add(schema, whole(path), "is not allowed here")
	default:
		if len(v.Causes) == 0 {
			e.add(schema, whole(path), words(v))
		}
		for _, cause := range v.Causes {
			e.leaves(schema, cause, at)
		}
	}
}

// whole puts what a subchart has as a global value where it is written: helm
// hands those of the whole chart down.
func whole(path []string) []string {
	if i := slices.Index(path, "global"); i > 0 {
		return path[i:]
	}
	return path
}

// words says what a rule wants.
func words(v *jsonschema.ValidationError) string {
	switch k := v.ErrorKind.(type) {
	case *kind.Type:
		return fmt.Sprintf("is %s, the chart takes %s", ofType(k.Got), strings.Join(slices.Sorted(slices.Values(mapped(k.Want, ofType))), " or "))
	case *kind.Enum:
		return fmt.Sprintf("is %s, the chart takes %s", plain(asJSON(k.Got)), plain(strings.Join(mapped(k.Want, asJSON), ", ")))
	}
	if said := v.DetailedOutput().Error; said != nil {
		return plain(said.String())
	}
	return "is not what the chart takes"
}

// alternatives joins what each of several forms has against a value.
func alternatives(v *jsonschema.ValidationError) string {
	inner := &ValuesError{}
	for _, cause := range v.Causes {
		inner.leaves("", cause, nil)
	}
	var said []string
	for _, w := range inner.Wrong {
		s := w.Message
		if len(w.Path) > len(v.InstanceLocation) {
			s = plain(strings.Join(w.Path[len(v.InstanceLocation):], ".")) + " " + s
		}
		if !slices.Contains(said, s) {
			said = append(said, s)
		}
	}
	return plain("fits none of the forms that the chart takes: " + strings.Join(said, ", or "))
}

func ofType(json string) string {
	switch json {
	case "object":
		return "a mapping"
	case "array":
		return "a list"
	case "null":
		return "nothing"
	case "boolean":
		return "true or false"
	case "string":
		return "a text"
	case "integer":
		return "a whole number"
	}
	return "a " + json
}

func asJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return "?"
	}
	return string(text)
}

func mapped[T any](in []T, f func(T) string) []string {
	var out []string
	for _, v := range in {
		out = append(out, f(v))
	}
	return out
}

// mostWords bounds what a stranger's schema brings onto the screen.
const mostWords = 300 // runes

// plain makes a stranger's text safe for a terminal, and one line of it.
func plain(s string) string {
	s = strings.Join(strings.FieldsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }), " ")
	if r := []rune(s); len(r) > mostWords {
		return string(r[:mostWords]) + "…"
	}
	return s
}
