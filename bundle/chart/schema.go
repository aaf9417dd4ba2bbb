package chart

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
)

// ValuesError says what a chart's schemas of values have against the values that
// it would be installed with, its own among them.
type ValuesError struct {
	Chart string // name and version
	Wrong []WrongValue
}

// WrongValue is one thing that a schema has against values.
type WrongValue struct {
	Schema  string   // name of the chart whose schema it is, in the end a subchart's
	Path    []string // in the values of the whole chart; empty where the schema itself is at fault
	Message string   // lower case, no full stop, on one line
	Advice  string   // what to do; empty: mend the value
}

// Error lists everything, one a line.
func (e *ValuesError) Error() string {
	var lines []string
	for _, w := range e.Wrong {
		lines = append(lines, strings.TrimSuffix("values."+strings.Join(w.Path, "."), ".")+": "+w.Message)
	}
	return fmt.Sprintf("chart %s: %s", e.Chart, strings.Join(lines, "\n"))
}

// schemaName is the address that a schema has while it is read; Helm's own.
const schemaName = "file:///values.schema.json"

// checkValues holds values, completed and merged by Helm, against the schemas of
// a chart and of its subcharts. Helm does the same, but asks for the schemas that
// one refers to, wherever they are; here that is a finding.
func (c *Chart) checkValues(loaded *helmchart.Chart, values chartutil.Values) error {
	e := &ValuesError{Chart: c.Name + " " + c.Version}
	e.check(loaded, loaded.Name(), values, nil)
	if len(e.Wrong) == 0 {
		return nil
	}
	slices.SortStableFunc(e.Wrong, func(a, b WrongValue) int { return slices.Compare(a.Path, b.Path) })
	return e
}

func (e *ValuesError) check(c *helmchart.Chart, name string, values map[string]any, at []string) {
	if c.Schema != nil {
		e.checkOne(name, c.Schema, values, at)
	}
	for _, sub := range c.Dependencies() {
		path := append(slices.Clone(at), sub.Name())
		switch v := values[sub.Name()].(type) {
		case nil:
		case map[string]any:
			e.check(sub, name+"/"+sub.Name(), v, path)
		case chartutil.Values:
			e.check(sub, name+"/"+sub.Name(), v, path)
		default:
			e.add(name, path, "the values of a subchart have to be a mapping")
		}
	}
}

func (e *ValuesError) add(schema string, path []string, message string) {
	w := WrongValue{Schema: schema, Path: path, Message: message}
	same := func(x WrongValue) bool { return slices.Equal(x.Path, path) && x.Message == message }
	if !slices.ContainsFunc(e.Wrong, same) {
		e.Wrong = append(e.Wrong, w)
	}
}

func (e *ValuesError) checkOne(name string, text []byte, values map[string]any, at []string) {
	schema, err := compile(text)
	if err != nil {
		w := WrongValue{Schema: name, Path: at, Message: "values.schema.json of the chart is not one: " + plain(err.Error()), Advice: "take a version of the chart where it is mended"}
		if outside, ok := errors.AsType[*jsonschema.LoadURLError](err); ok {
			w.Message = fmt.Sprintf("values.schema.json of the chart refers to %s, which helm cannot ask for on the site", plain(outside.URL))
			w.Advice = "copy the chart into a folder, take the reference out of its values.schema.json, and name the folder as source"
		}
		e.Wrong = append(e.Wrong, w)
		return
	}
	invalid, ok := errors.AsType[*jsonschema.ValidationError](schema.Validate(values))
	if ok {
		e.leaves(name, invalid, at)
	}
}

// compile reads a schema, and nothing that it refers to outside of itself.
func compile(text []byte) (*jsonschema.Schema, error) {
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(nowhere{})
	if err := compiler.AddResource(schemaName, document); err != nil {
		return nil, err
	}
	return compiler.Compile(schemaName)
}

// nowhere stands where a loader would ask other machines, or read files.
type nowhere struct{}

// Load refuses every address. Of a URN Helm too knows nothing, and takes it to
// allow everything.
func (nowhere) Load(address string) (any, error) {
	if strings.HasPrefix(address, "urn:") {
		return true, nil
	}
	return nil, errors.New("it is not asked for")
}
