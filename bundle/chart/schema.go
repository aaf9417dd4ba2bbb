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

// ValuesError lists the values that a chart's schemas reject. The values are the user's,
// merged over the chart's own.
type ValuesError struct {
	Chart string // name and version
	Wrong []WrongValue
}

// WrongValue is one value that a schema rejects, or an error in the schema.
type WrongValue struct {
	Schema  string   // path of names to the chart or subchart with the schema
	Path    []string // in the values of the top chart; empty if the schema itself is invalid
	Message string   // lower case, no full stop, on one line
	Advice  string   // what to do; "" means: correct the value
}

// Error lists all findings, one per line.
func (e *ValuesError) Error() string {
	var lines []string
	for _, w := range e.Wrong {
		lines = append(lines, strings.TrimSuffix("values."+strings.Join(w.Path, "."), ".")+": "+w.Message)
	}
	return fmt.Sprintf("chart %s: %s", e.Chart, strings.Join(lines, "\n"))
}

// schemaName is the address of a schema while it is compiled; the same as Helm's.
const schemaName = "file:///values.schema.json"

// checkValues validates the merged values against the schemas of a chart and of its
// subcharts. Helm does the same, but fetches schemas that a schema refers to; here such a
// reference is a finding.
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
			e.add(name, path, "the values of a subchart must be an object")
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
		w := WrongValue{Schema: name, Path: at, Message: "values.schema.json of the chart is not a valid JSON Schema: " + plain(err.Error()), Advice: "use a version of the chart that fixes it"}
		if outside, ok := errors.AsType[*jsonschema.LoadURLError](err); ok {
			w.Message = fmt.Sprintf("values.schema.json of the chart refers to %s, which helm cannot fetch at the site", plain(outside.URL))
			w.Advice = "unpack the chart into a folder, remove the reference from its values.schema.json, and set the folder as source"
		}
		e.Wrong = append(e.Wrong, w)
		return
	}
	invalid, ok := errors.AsType[*jsonschema.ValidationError](schema.Validate(values))
	if ok {
		e.leaves(name, invalid, at)
	}
}

// compile compiles a schema without loading anything that it refers to.
func compile(text []byte) (*jsonschema.Schema, error) {
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(noLoader{})
	if err := compiler.AddResource(schemaName, document); err != nil {
		return nil, err
	}
	return compiler.Compile(schemaName)
}

// noLoader replaces a loader that would use the network or read files.
type noLoader struct{}

// Load rejects every address except a URN, which Helm accepts as a schema that allows
// everything.
func (noLoader) Load(address string) (any, error) {
	if strings.HasPrefix(address, "urn:") {
		return true, nil
	}
	return nil, errors.New("references outside the schema are not fetched")
}
