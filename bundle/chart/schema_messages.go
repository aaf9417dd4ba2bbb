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

// leaves adds the values at fault in a failed validation, without the chain of rules that
// led to them.
func (e *ValuesError) leaves(schema string, v *jsonschema.ValidationError, at []string) {
	path := append(slices.Clone(at), v.InstanceLocation...)
	switch k := v.ErrorKind.(type) {
	case *kind.AnyOf:
		e.add(schema, globalPath(path), alternatives(v))
	case *kind.OneOf:
		if len(k.Subschemas) > 0 {
			e.add(schema, globalPath(path), "matches several alternatives, of which the chart accepts exactly one")
			return
		}
		e.add(schema, globalPath(path), alternatives(v))
	case *kind.Required:
		for _, name := range k.Missing {
			e.add(schema, globalPath(append(slices.Clone(path), name)), "is missing")
		}
	case *kind.AdditionalProperties:
		for _, name := range k.Properties {
			e.add(schema, globalPath(append(slices.Clone(path), name)), "is not a value that the chart knows")
		}
	case *kind.FalseSchema, *kind.Not:
		e.add(schema, globalPath(path), "is not allowed here")
	default:
		if len(v.Causes) == 0 {
			e.add(schema, globalPath(path), words(v))
		}
		for _, cause := range v.Causes {
			e.leaves(schema, cause, at)
		}
	}
}

// globalPath shortens the path of a global value in a subchart to where the user writes it:
// helm passes the global values of the top chart to its subcharts.
func globalPath(path []string) []string {
	if i := slices.Index(path, "global"); i > 0 {
		return path[i:]
	}
	return path
}

// words describes what a rule requires.
func words(v *jsonschema.ValidationError) string {
	switch k := v.ErrorKind.(type) {
	case *kind.Type:
		return fmt.Sprintf("is %s, the chart accepts %s", ofType(k.Got), strings.Join(slices.Sorted(slices.Values(mapped(k.Want, ofType))), " or "))
	case *kind.Enum:
		return fmt.Sprintf("is %s, the chart accepts %s", plain(asJSON(k.Got)), plain(strings.Join(mapped(k.Want, asJSON), ", ")))
	}
	if text := v.DetailedOutput().Error; text != nil {
		return plain(text.String())
	}
	return "is not accepted by the chart"
}

// alternatives joins the findings of each alternative of a rule.
func alternatives(v *jsonschema.ValidationError) string {
	inner := &ValuesError{}
	for _, cause := range v.Causes {
		inner.leaves("", cause, nil)
	}
	var findings []string
	for _, w := range inner.Wrong {
		s := w.Message
		if len(w.Path) > len(v.InstanceLocation) {
			s = plain(strings.Join(w.Path[len(v.InstanceLocation):], ".")) + " " + s
		}
		if !slices.Contains(findings, s) {
			findings = append(findings, s)
		}
	}
	return plain("matches none of the alternatives that the chart accepts: " + strings.Join(findings, ", or "))
}

func ofType(json string) string {
	switch json {
	case "object":
		return "an object"
	case "array":
		return "an array"
	case "null":
		return "null"
	case "boolean":
		return "a boolean"
	case "string":
		return "a string"
	case "integer":
		return "an integer"
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

// maxMessage limits the text from an untrusted schema in an error.
const maxMessage = 300 // runes

// plain returns untrusted text as one line that is safe to print on a terminal.
func plain(s string) string {
	s = strings.Join(strings.FieldsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }), " ")
	if r := []rune(s); len(r) > maxMessage {
		return string(r[:maxMessage]) + "…"
	}
	return s
}
