package chart_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mensylisir/kubexm/bundle/chart"
)

// withSchema is a chart with a schema of values, and a subchart with another one.
func withSchema(t *testing.T, schema, values string) *chart.Chart {
	sub := tgz(t, "db/Chart.yaml", "apiVersion: v2\nname: db\nversion: 0.1.0\n", "db/values.yaml", "tag: '1'\n",
		"db/values.schema.json", `{"properties": {"tag": {"type": "string"}, "global": {"properties": {"zone": {"maxLength": 3}}}}}`)
	return read(t, tgz(t, "web/Chart.yaml", about+"dependencies: [{name: db, alias: store, version: 0.1.0, condition: store.enabled}]\n",
		"web/charts/db-0.1.0.tgz", string(sub), "web/values.yaml", values, "web/values.schema.json", schema, "web/templates/a.yaml", "a: 1\n"))
}

// TestValuesThatASchemaRejects are named one by one, with their place in the
// values of the whole chart.
func TestValuesThatASchemaRejects(t *testing.T) {
	const schema = `{"type": "object", "additionalProperties": false, "required": ["name", "mode"], "properties": {
		"name": {"type": "string"}, "store": {}, "global": {}, "replicas": {"type": ["integer", "null"], "minimum": 1}, "mode": {"enum": ["a", "b", 3]},
		"ports": {"type": "array", "items": {"$ref": "#/$defs/port"}}, "size": {"anyOf": [{"type": "string", "pattern": "Gi$"}, {"type": "integer"}]},
		"never": false, "from": {"oneOf": [{"required": ["secret"]}, {"required": ["file"]}]}},
		"$defs": {"port": {"type": "object", "properties": {"number": {"type": "integer"}}, "additionalProperties": false}}}`
	for name, c := range map[string]struct {
		values string
		want   []string // schema, path: message
	}{
		"right": {"{name: x, mode: a, ports: [{number: 1}], size: 5Gi, store: {enabled: true, tag: x}}", nil},
		"wrong": {"{mode: c, replicas: 0, ports: [{number: 1}, {number: high, colour: x}], size: 5G, never: 1, colour: red, from: {secret: x, file: y}}", []string{
			"web colour: is not a value that the chart knows",
			"web from: matches several alternatives, of which the chart accepts exactly one",
			`web mode: is "c", the chart accepts "a", "b", 3`,
			"web name: is missing",
			"web never: is not allowed here",
			"web ports.1.colour: is not a value that the chart knows",
			"web ports.1.number: is a string, the chart accepts an integer",
			"web replicas: minimum: got 0, want 1",
			"web size: matches none of the alternatives that the chart accepts: '5G' does not match pattern 'Gi$', or is a string, the chart accepts an integer",
		}},
		"of a type": {"{name: [], mode: 3, replicas: 1.5, from: {}}", []string{
			"web from: matches none of the alternatives that the chart accepts: secret is missing, or file is missing",
			"web name: is an array, the chart accepts a string",
			"web replicas: is a number, the chart accepts an integer or null",
		}},
		"of a subchart": {"{name: x, mode: a, store: {tag: 5}, global: {zone: north}}", []string{
			"web/store global.zone: maxLength: got 5, want 3",
			"web/store store.tag: is a number, the chart accepts a string",
		}},
		"of a subchart that is off": {"{name: x, mode: a, store: {enabled: false, tag: 5}}", nil},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := withSchema(t, schema, "").Render(chart.Options{Release: "r", Kubernetes: "v1.32.2", Values: []byte(c.values)})
			var got []string
			if e, ok := errors.AsType[*chart.ValuesError](err); ok {
				for _, w := range e.Wrong {
					got = append(got, w.Schema+" "+strings.Join(w.Path, ".")+": "+w.Message)
				}
			} else if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestSchemaReferencesAreNotFetched: neither on the network nor on this
// machine. Helm would, on a site where nobody answers.
func TestSchemaReferencesAreNotFetched(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("%s was asked for", r.URL) }))
	defer server.Close()
	// The standard client's transport, should anything take that one.
	standard := http.DefaultTransport
	http.DefaultTransport = refusing{t}
	defer func() { http.DefaultTransport = standard }()
	file := filepath.Join(t.TempDir(), "a.json")
	write(t, file, "{}")
	for _, address := range []string{server.URL + "/a.json", "https://schemas.example/a.json", "file://" + file, "a.json", "ftp://schemas.example/a"} {
		for _, schema := range []string{`{"properties": {"a": {"$ref": "` + address + `#/definitions/b"}}}`, `{"$schema": "` + address + `"}`, `{"allOf": [{"$ref": "` + address + `"}]}`} {
			_, err := withSchema(t, schema, "").Render(chart.Options{Release: "r", Kubernetes: "v1.32.2", Values: []byte("{a: 1}")})
			e, ok := errors.AsType[*chart.ValuesError](err)
			if !ok || len(e.Wrong) != 1 || !strings.Contains(e.Wrong[0].Message, strings.TrimPrefix(address, "file://")+", which helm cannot fetch at the site") || e.Wrong[0].Advice == "" {
				t.Errorf("%s: %v", schema, err)
			}
		}
	}
	// What a schema holds itself, the drafts of JSON Schema, and a URN, of which Helm knows nothing either.
	for _, schema := range []string{
		`{"$id": "https://schemas.example/a.json", "properties": {"a": {"$ref": "https://schemas.example/a.json#/definitions/b"}}, "definitions": {"b": {"type": "integer"}}}`,
		`{"$schema": "http://json-schema.org/draft-07/schema#"}`, `{"$schema": "https://json-schema.org/draft/2020-12/schema"}`, `{"$ref": "urn:x:y"}`,
	} {
		if _, err := withSchema(t, schema, "").Render(chart.Options{Release: "r", Kubernetes: "v1.32.2", Values: []byte("{a: 1}")}); err != nil {
			t.Errorf("%s: %v", schema, err)
		}
	}
}

type refusing struct{ t *testing.T }

func (r refusing) RoundTrip(req *http.Request) (*http.Response, error) {
	r.t.Errorf("%s was asked for", req.URL)
	return nil, errors.New("refused")
}

// TestInvalidSchema is said to be the chart's fault.
func TestInvalidSchema(t *testing.T) {
	for _, schema := range []string{"{", `{"type": "no type"}`, `{"$ref": "#/nowhere"}`, `{"pattern": "("}`, "[]", "5"} {
		_, err := withSchema(t, schema, "").Render(chart.Options{Release: "r", Kubernetes: "v1.32.2", Values: []byte("{a: 1}")})
		if e, ok := errors.AsType[*chart.ValuesError](err); !ok || len(e.Wrong) != 1 || !strings.Contains(e.Wrong[0].Message, "values.schema.json of the chart is not a valid JSON Schema") {
			t.Errorf("%s: %v", schema, err)
		}
	}
}

// FuzzSchema: no schema and no values end in more than a finding.
func FuzzSchema(f *testing.F) {
	f.Add([]byte(`{"type": "object", "properties": {"a": {"type": "integer"}}}`), []byte("{a: 1}"))
	f.Add([]byte(`{"$ref": "#"}`), []byte("{a: {a: {}}}"))
	f.Add([]byte(`{"$dynamicRef": "#a", "$defs": {"x": {"$dynamicAnchor": "a", "not": {"$ref": "#"}}}}`), []byte("a: [1, 1]"))
	f.Add([]byte(`{"oneOf": [{"propertyNames": {"pattern": "^(a+)+$"}}, {"unevaluatedProperties": false}], "dependentRequired": {"a": ["b"]}}`), []byte("{aaaaaaaaab: [x, x]}"))
	f.Fuzz(func(t *testing.T, schema, values []byte) {
		c := read(t, tgz(t, "web/Chart.yaml", about, "web/values.schema.json", string(schema), "web/templates/a.yaml", "a: 1\n"))
		_, err := c.Render(chart.Options{Release: "r", Kubernetes: "v1.32.2", Values: values})
		if e, ok := errors.AsType[*chart.ValuesError](err); ok {
			for _, w := range e.Wrong {
				if w.Message == "" || strings.ContainsAny(w.Message, "\n\x1b") {
					t.Errorf("%q", w.Message)
				}
			}
		}
	})
}
