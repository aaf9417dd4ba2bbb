package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/mensylisir/kubexm/manifest/document"
)

// maxInventory is the maximum size of an inventory in bytes. An inventory of ten thousand
// blobs has a tenth of it.
const maxInventory = 8 << 20

// inventoryAdvice is the advice for an invalid inventory.
const inventoryAdvice = "create it again at the site with `kubexm site inventory`"

// DecodeInventory reads an inventory strictly. Unknown fields, fields of another type,
// malformed digests and repeated entries are problems. All problems are in one report.
func DecodeInventory(r io.Reader) (*Inventory, Problems) {
	text, err := io.ReadAll(io.LimitReader(r, maxInventory+1))
	if err != nil {
		return nil, Problems{{Message: "cannot be read: " + err.Error()}}
	}
	if len(text) > maxInventory {
		return nil, Problems{{Message: fmt.Sprintf("larger than %d bytes", maxInventory), Advice: inventoryAdvice}}
	}
	f := &findings{}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		f.add("", "is not JSON: %s", jsonFault(err))
		f.problems[0].Line, f.problems[0].Column = lineOf(text, err), 1
		return nil, f.problems
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		f.add("", "has data after the end of the document")
		return nil, f.problems
	}
	f.fields("", v, reflect.TypeFor[Inventory]())
	var i Inventory
	if err := json.Unmarshal(text, &i); err != nil && len(f.problems) == 0 {
		f.add("", "%s", jsonFault(err))
	}
	if len(f.problems) == 0 {
		i.check(f)
	}
	if err := f.problems.Err(); err != nil {
		return nil, f.problems
	}
	return &i, nil
}

// jsonFault returns the message of a JSON error without the name of a Go type.
func jsonFault(err error) string {
	var typed *json.UnmarshalTypeError
	if errors.As(err, &typed) {
		return fmt.Sprintf("%s cannot be a %s", typed.Field, typed.Value)
	}
	return strings.TrimPrefix(err.Error(), "json: ")
}

// lineOf returns the line of a syntax error; the last line for other errors.
func lineOf(text []byte, err error) int {
	var syntax *json.SyntaxError
	at := len(text)
	if errors.As(err, &syntax) {
		at = min(int(syntax.Offset), len(text))
	}
	return 1 + bytes.Count(text[:at], []byte("\n"))
}

// findings collects the problems of a JSON document.
type findings struct{ problems Problems }

func (f *findings) add(path, format string, args ...any) {
	if len(f.problems) < document.MaxProblems {
		f.problems = append(f.problems, Problem{Path: path, Message: fmt.Sprintf(format, args...), Advice: inventoryAdvice})
	}
}

// fields compares a decoded value with its Go type. It finds every unknown name and every
// wrong type, while encoding/json stops at the first.
func (f *findings) fields(path string, v any, t reflect.Type) {
	if t.Kind() == reflect.Pointer {
		if v == nil {
			return
		}
		t = t.Elem()
	}
	fits := false
	switch t.Kind() {
	case reflect.Struct:
		if t.PkgPath() == "time" {
			s, _ := v.(string)
			_, err := time.Parse(time.RFC3339, s)
			fits = err == nil
			break
		}
		var object map[string]any
		if object, fits = v.(map[string]any); fits {
			f.object(path, object, t)
		}
	case reflect.Map:
		var object map[string]any
		if object, fits = v.(map[string]any); fits {
			for _, k := range slices.Sorted(maps.Keys(object)) {
				f.fields(path+"["+k+"]", object[k], t.Elem())
			}
		}
	case reflect.Slice:
		var list []any
		if list, fits = v.([]any); fits {
			for i, x := range list {
				f.fields(fmt.Sprintf("%s[%d]", path, i), x, t.Elem())
			}
		}
	case reflect.String:
		_, fits = v.(string)
	case reflect.Bool:
		_, fits = v.(bool)
	case reflect.Int64:
		var n json.Number
		if n, fits = v.(json.Number); fits {
			_, err := n.Int64()
			fits = err == nil
		}
	}
	if !fits {
		f.add(path, "%s is not %s", shownJSON(v), wantedJSON(t))
	}
}

// object checks the fields of an object. Names are compared exactly, including their case.
func (f *findings) object(path string, object map[string]any, t reflect.Type) {
	known := map[string]reflect.Type{}
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		known[name] = t.Field(i).Type
	}
	for _, k := range slices.Sorted(maps.Keys(object)) {
		at := strings.TrimPrefix(path+"."+k, ".")
		if of, ok := known[k]; ok {
			f.fields(at, object[k], of)
		} else {
			f.add(at, "is not a field of an inventory")
		}
	}
}

func shownJSON(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case map[string]any:
		return "an object"
	case []any:
		return "a list"
	case string:
		return fmt.Sprintf("%.80q", v)
	}
	return fmt.Sprintf("%.80v", v)
}

func wantedJSON(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Slice:
		return "a list"
	case reflect.String:
		return "a string"
	case reflect.Int64:
		return "a whole number"
	case reflect.Bool:
		return "true or false"
	case reflect.Struct:
		if t.PkgPath() == "time" {
			return "a time, as 2026-05-06T12:00:00Z"
		}
	}
	return "an object"
}

// check finds invalid values in a decoded inventory.
func (i *Inventory) check(f *findings) {
	if i.APIVersion != APIVersion || i.Kind != InventoryKind {
		f.add("apiVersion", "is %q %q, not %s %s", i.APIVersion, i.Kind, APIVersion, InventoryKind)
	}
	if i.Cluster == "" {
		f.add("cluster", "is missing")
	}
	digest := func(path, d string) {
		if !prefixDigest.MatchString(d) {
			f.add(path, "%.80q is not a sha256 digest", d)
		}
	}
	if i.Applied != nil {
		digest("applied.root", i.Applied.Root)
	}
	for n, b := range i.Bundles {
		path := fmt.Sprintf("bundles[%d]", n)
		digest(path+".root", b.Root)
		if b.File == "" || b.Bytes <= 0 {
			f.add(path, "has no file name or no size")
		}
	}
	switch i.Registry.State {
	case RegistryRunning, RegistryAbsent, RegistrySilent:
	default:
		f.add("registry.state", "%.80q is not one of %s, %s, %s", i.Registry.State, RegistryRunning, RegistryAbsent, RegistrySilent)
	}
	for n, x := range i.Registry.Images {
		path := fmt.Sprintf("registry.images[%d]", n)
		digest(path+".digest", x.Digest)
		if x.Reference == "" {
			f.add(path+".reference", "is missing")
		}
	}
	for _, d := range slices.Sorted(maps.Keys(i.Blobs)) {
		digest("blobs", d)
		if where := i.Blobs[d]; !where.Bundle() && !where.Registry() {
			f.add("blobs["+d+"]", "%.80q is not one of %s, %s, %s", where, InBundle, InRegistry, InBoth)
		}
		if i.Blobs[d].Bundle() && len(i.Bundles) == 0 {
			f.add("blobs["+d+"]", "is in a bundle, but no bundle is listed")
		}
	}
	names := map[string]bool{}
	for n, h := range i.Hosts {
		path := fmt.Sprintf("hosts[%d].name", n)
		if h.Name == "" || names[h.Name] {
			f.add(path, "%q is empty or a duplicate", h.Name)
		}
		names[h.Name] = true
	}
}
