package manifest

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/manifest/document"
)

// places counts in how many mappings the fields of a struct stand.
func places() map[reflect.Type]int {
	holders := map[reflect.Type]map[string]bool{}
	eachField(func(_ reflect.Type, x document.Key, path string) {
		if holders[x.Owner] == nil {
			holders[x.Owner] = map[string]bool{}
		}
		holders[x.Owner][document.Parent(path)] = true
	})
	out := map[reflect.Type]int{}
	for t, in := range holders {
		out[t] = len(in)
	}
	return out
}

// wholes are the lists whose entries are compared as one, by path.
func wholes() map[string]bool {
	out := map[string]bool{}
	eachField(func(_ reflect.Type, x document.Key, path string) {
		if x.Type.Kind() == reflect.Slice && x.Type.Elem().Kind() == reflect.Struct && x.Type != reflect.TypeFor[[]Host]() && x.Type != reflect.TypeFor[[]Addon]() {
			out[path] = true
		}
	})
	return out
}

// effectProblems says what is wrong with the tags of one field.
func effectProblems(x document.Key, path string, shared, entry bool) []string {
	var out []string
	tag, own := x.Tag.Lookup("effect")
	install, said := x.Tag.Lookup("install")
	f, _ := ConfigFields().Find(path)
	switch {
	case f.Effect == "" && len(f.Fields) == 0:
		out = append(out, "has no effect")
	case !own && len(f.Fields) == 0 && !shared && !entry:
		out = append(out, "has no effect of its own, and stands in one place alone")
	case own && entry:
		out = append(out, "has an effect, and its list is compared as a whole: the effect is the list's")
	}
	for _, e := range Effect(tag).Each() {
		if _, ok := rowOf(e); !ok {
			out = append(out, "has the effect "+string(e)+", which is none")
		}
	}
	if said && (!own || !slices.Contains(installs(), Install(install))) {
		out = append(out, "says install:"+install+", which means nothing")
	}
	if said && Effect(tag).Is(EffectTool) {
		out = append(out, "says what install does of a field that no host knows")
	}
	return out
}

// TestEveryFieldHasAnEffect: the tag effect of each field is one that is known. Of a
// field without it, the tag of the mapping or list around it counts only where the field's
// struct stands in several places, or is an entry of a list that is compared whole.
func TestEveryFieldHasAnEffect(t *testing.T) {
	stands, whole, seen := places(), wholes(), map[Effect]bool{}
	within := func(path string) bool {
		return slices.ContainsFunc(slices.Collect(maps.Keys(whole)), func(list string) bool { return strings.HasPrefix(path, list+".") })
	}
	eachField(func(_ reflect.Type, x document.Key, path string) {
		for _, p := range effectProblems(x, path, stands[x.Owner] > 1, within(path)) {
			t.Errorf("%s %s", path, p)
		}
		for _, e := range Effect(x.Tag.Get("effect")).Each() {
			seen[e] = true
		}
	})
	for _, r := range effectRows() {
		if !seen[r.effect] {
			t.Errorf("no field has the effect %s", r.effect)
		}
	}
	for _, path := range SupportedFields() {
		if _, _, ok := EffectOf(path); !ok {
			t.Errorf("%s has no effect", path)
		}
	}
	if e, i, ok := EffectOf("spec.monitoring.enabled"); ok {
		t.Errorf("a field that waits has an effect on a cluster: %s, %s", e, i)
	}
}

// TestTagsOfEffectsAreHeld: a field with a tag that is wrong, or without one, is found.
func TestTagsOfEffectsAreHeld(t *testing.T) {
	for tag, want := range map[string]string{
		`yaml:"maxPods"`:                                   "has no effect of its own",
		`yaml:"maxPods" effect:"kublet"`:                   "has the effect kublet, which is none",
		`yaml:"maxPods" effect:"kubelet=drian"`:            "has the effect kubelet=drian, which is none",
		`yaml:"maxPods" effect:"kubelet" install:"none"`:   "says install:none, which means nothing",
		`yaml:"maxPods" install:"all"`:                     "says install:all, which means nothing",
		`yaml:"maxPods" effect:"tool" install:"all"`:       "that no host knows",
		`yaml:"maxPods" effect:"kubelet" install:"add"`:    "",
		`yaml:"maxPods" effect:"immutable=create,kubelet"`: "",
	} {
		got := strings.Join(effectProblems(document.Key{Tag: reflect.StructTag(tag)}, "spec.kubernetes.maxPods", false, false), "; ")
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", tag, got, want)
		}
	}
}

// TestEffectsInWords: which hosts, and what is done there.
func TestEffectsInWords(t *testing.T) {
	for e, want := range map[Effect]string{
		"kubelet":               "restarts the kubelet on each node, one at a time, pods keep running",
		"immutable=create,etcd": "requires a new cluster: this one was created with the old value",
		"apiserver,scheduler":   "restarts the API server on each master, one at a time; restarts the scheduler on each master, one at a time",
	} {
		if got := e.Describe(AnyHosts); got != want {
			t.Errorf("%s: %s", e, got)
		}
	}
	for e, want := range map[Effect][]string{
		"immutable=create": {RoleMaster}, "immutable=create,etcd": {RoleEtcd}, "upgrade,runtime": {RoleMaster, RoleWorker}, "host": nil, "registry,runtime=files": {RoleRegistry, RoleMaster, RoleWorker},
	} {
		if got := e.On(); !slices.Equal(got, want) {
			t.Errorf("%s is on %v", e, got)
		}
	}
	on := func(roles []string) string { return strings.Join(roles, "+") }
	c := Change{Path: "spec.kubernetes.maxPods", Was: "110", Now: "200", Effect: "kubelet"}
	if got, want := c.Line(on), "spec.kubernetes.maxPods 110 → 200: restarts the kubelet on master+worker, one at a time, pods keep running"; got != want {
		t.Error(got)
	}
	c = Change{Path: "spec.hosts.labels", Item: "w1", Now: "disk: ssd", Effect: "labels"}
	if got, want := c.Line(on), "spec.hosts.labels (w1) nothing → disk: ssd: sets labels and taints of w1"; got != want {
		t.Error(got)
	}
}
