package manifest

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/manifest/document"
)

// Change is a field whose value differs between two configs.
type Change struct {
	Path string // without indexes and map keys: "spec.kubernetes.maxPods"
	Item string // the host, add-on or registry that has the field; "" for a field of the cluster
	Was  string // "" means not set
	Now  string
	// Less means that something was removed: an entry of a list or a mapping, or the complete
	// value.
	Less bool
	// Effect is what the change requires, Install what install does with it.
	Effect  Effect
	Install Install
}

// Line describes the change and what it requires: "spec.kubernetes.maxPods 110 → 200: restarts
// the kubelet on m1 and w1, one at a time, pods keep running". hosts returns the names of the
// hosts with some roles, or of all hosts for no roles.
func (c Change) Line(hosts func(roles []string) string) string {
	what := c.Path
	if c.Item != "" {
		what += " (" + c.Item + ")"
	}
	return what + " " + Abbreviate(c.Was) + " → " + Abbreviate(c.Now) + ": " + c.DescribeEffect(hosts)
}

// DescribeEffect returns a text that completes "the change …".
func (c Change) DescribeEffect(hosts func(roles []string) string) string {
	if strings.HasPrefix(c.Path, "spec.hosts.") {
		hosts = func([]string) string { return c.Item }
	}
	return c.Effect.Describe(hosts)
}

// mostShown is the maximum number of characters of a value in output for people.
const mostShown = 60

// Abbreviate returns a value for output for people: on one line, and cut if it is long.
func Abbreviate(value string) string {
	short := []rune(strings.Join(strings.Fields(value), " "))
	switch {
	case len(short) == 0:
		return "nothing"
	case len(short) > mostShown:
		return string(short[:mostShown]) + "…"
	}
	return string(short)
}

// Diff lists the fields that differ between two decoded configs, sorted by path and item.
// Hosts, add-ons and registry credentials are matched by name, roles are compared per host.
// Secrets are not compared.
func Diff(was, now *Cluster) []Change {
	d := &differ{}
	d.walk(reflect.ValueOf(was).Elem(), reflect.ValueOf(now).Elem(), Change{})
	d.roles(was, now)
	slices.SortFunc(d.found, func(a, b Change) int { return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Item, b.Item)) })
	return d.found
}

type differ struct{ found []Change }

// roles compares the roles of each host.
func (d *differ) roles(was, now *Cluster) {
	for _, role := range []string{RoleEtcd, RoleMaster, RoleWorker, RoleRegistry, RoleLoadBalancer} {
		at := Change{Path: "spec.roleGroups." + role}
		at.Effect, at.Install, _ = EffectOf(at.Path)
		before, after := was.Spec.RoleGroups.Names(role), now.Spec.RoleGroups.Names(role)
		for _, at.Item = range before {
			if !slices.Contains(after, at.Item) {
				d.add(at, role, "", true)
			}
		}
		for _, at.Item = range after {
			if !slices.Contains(before, at.Item) {
				d.add(at, "", role, false)
			}
		}
	}
}

// add records a change.
func (d *differ) add(c Change, was, now string, less bool) {
	c.Was, c.Now, c.Less = was, now, less
	d.found = append(d.found, c)
}

// walk compares two values of one type; at is their change without the values.
func (d *differ) walk(was, now reflect.Value, at Change) {
	t := was.Type()
	switch {
	case t == secretType || at.Path == "spec.roleGroups":
	case t.Kind() == reflect.Pointer:
		d.walk(pointed(was), pointed(now), at)
	case t.Kind() == reflect.Struct && !t.Implements(reflect.TypeFor[fmt.Stringer]()):
		for _, f := range document.Keys(t) {
			in := at
			in.Path = document.Join(at.Path, f.Name)
			in.Effect, in.Install = tagged(f.Tag, at.Effect, at.Install)
			d.walk(was.FieldByIndex(f.Index), now.FieldByIndex(f.Index), in)
		}
	case t.Kind() == reflect.Map && t.Elem().Kind() == reflect.Struct:
		d.each(entries(was), entries(now), at)
	case t == reflect.TypeFor[[]Host]() || t == reflect.TypeFor[[]Addon]():
		d.each(named(was), named(now), at)
	default:
		if before, after := inWords(was), inWords(now); before != after {
			d.add(at, before, after, lacks(was, now))
		}
	}
}

// each compares named entries. An entry that only one side has is one change.
func (d *differ) each(was, now map[string]reflect.Value, at Change) {
	for _, name := range slices.Sorted(maps.Keys(was)) {
		at.Item = name
		after, ok := now[name]
		if !ok {
			d.add(at, name, "", true)
			continue
		}
		d.walk(was[name], after, at)
	}
	for _, name := range slices.Sorted(maps.Keys(now)) {
		if _, ok := was[name]; !ok {
			at.Item = name
			d.add(at, "", name, false)
		}
	}
}

// tagged returns the effect in the tags of a field, or the effect of the enclosing mapping or
// list if the field has none.
func tagged(tag reflect.StructTag, effect Effect, install Install) (Effect, Install) {
	if e, ok := tag.Lookup("effect"); ok {
		return Effect(e), Install(tag.Get("install"))
	}
	return effect, install
}

// pointed returns the value that a pointer refers to; the zero value for nil.
func pointed(v reflect.Value) reflect.Value {
	if v.IsNil() {
		return reflect.Zero(v.Type().Elem())
	}
	return v.Elem()
}

func entries(v reflect.Value) map[string]reflect.Value {
	out := map[string]reflect.Value{}
	for _, k := range v.MapKeys() {
		out[k.String()] = v.MapIndex(k)
	}
	return out
}

func named(v reflect.Value) map[string]reflect.Value {
	out := map[string]reflect.Value{}
	for i := range v.Len() {
		out[v.Index(i).FieldByName("Name").String()] = v.Index(i)
	}
	return out
}

// lacks reports whether was has an entry that now does not have.
func lacks(was, now reflect.Value) bool {
	switch was.Kind() {
	case reflect.Slice:
		var left []string
		for i := range now.Len() {
			left = append(left, identity(now.Index(i)))
		}
		for i := range was.Len() {
			if !slices.Contains(left, identity(was.Index(i))) {
				return true
			}
		}
		return false
	case reflect.Map:
		after := entries(now)
		for key := range entries(was) {
			if _, ok := after[key]; !ok {
				return true
			}
		}
		return false
	}
	return now.IsZero()
}

// identity returns what identifies an entry of a list. A taint is identified by its key and
// effect: another value replaces it. Other entries are identified by their complete value.
func identity(v reflect.Value) string {
	if t, ok := v.Interface().(Taint); ok {
		return t.Key + ":" + t.Effect
	}
	return inWords(v)
}

// inWords returns a value as text. Equal values have the same text.
func inWords(v reflect.Value) string {
	switch {
	case v.Type() == secretType:
		return ""
	case v.Type() == reflect.TypeFor[Arg]():
		return v.Field(0).String() + "=" + v.Field(1).String()
	case v.CanInterface() && v.Type().Implements(reflect.TypeFor[fmt.Stringer]()):
		return fmt.Sprint(v.Interface())
	}
	switch v.Kind() {
	case reflect.Interface, reflect.Pointer:
		if v.IsNil() {
			return ""
		}
		return inWords(v.Elem())
	case reflect.Slice:
		var all []string
		for i := range v.Len() {
			all = append(all, inWords(v.Index(i)))
		}
		return strings.Join(all, ", ")
	case reflect.Map:
		var all []string
		for _, k := range v.MapKeys() {
			all = append(all, k.String()+": "+inWords(v.MapIndex(k)))
		}
		slices.Sort(all)
		return strings.Join(all, ", ")
	case reflect.Struct:
		var all []string
		for _, f := range document.Keys(v.Type()) {
			if text := inWords(v.FieldByIndex(f.Index)); text != "" {
				all = append(all, f.Name+": "+text)
			}
		}
		return "{" + strings.Join(all, ", ") + "}"
	}
	return fmt.Sprint(v.Interface())
}
