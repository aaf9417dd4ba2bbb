package versions

import (
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/mensylisir/kubexm/manifest"
)

var (
	hexDigest   = regexp.MustCompile(`^[0-9a-f]{64}$`)
	imageDigest = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
	nameForm    = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$`)
	versionForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+-]{0,127}$`)
)

// The fields of each mapping, for advice.
var (
	documentFields  = []string{"apiVersion", "kind", "components", "images"}
	recipeFields    = []string{"address", "digestAddress", "archive", "chart", "architectures", "members", "images", "packages", "unresolved"}
	componentFields = slices.Concat(recipeFields, []string{"kind", "family", "about", "follows", "always", "versions"})
	releaseFields   = slices.Concat(recipeFields, []string{"kubernetes", "sha256", "with"})
	memberFields    = []string{"path", "name"}
	imageFields     = []string{"name", "reference"}
)

func (r *reader) document(n *yaml.Node) *Document {
	doc := &Document{Components: map[string]*Component{}}
	r.mapping(n, "", documentFields, func(key string) field {
		switch key {
		case "apiVersion":
			return r.text(&doc.APIVersion, is(manifest.APIVersion))
		case "kind":
			return r.text(&doc.Kind, is(DocumentKind))
		case "components":
			return func(n *yaml.Node, path string) {
				r.named(n, path, nameForm, "is not a name in lower case", func(name string, value *yaml.Node, at string) {
					doc.Components[name] = r.component(value, at)
				})
			}
		case "images":
			return r.textMap(&doc.Images, reference, matches(imageDigest, "is not sha256: and 64 digits in lower-case hex"))
		}
		return nil
	})
	if n.Kind == yaml.MappingNode && (doc.APIVersion == "" || doc.Kind == "") && len(r.problems) == 0 {
		r.add(n, "", "has no apiVersion or no kind", "begin with apiVersion: "+manifest.APIVersion+" and kind: "+DocumentKind)
	}
	return doc
}

func (r *reader) component(n *yaml.Node, path string) *Component {
	c := &Component{Versions: map[string]Release{}}
	r.mapping(n, path, componentFields, func(key string) field {
		switch key {
		case "kind":
			return r.text((*string)(&c.Kind), oneOf("binary", "file", "image", "chart", "package"))
		case "family":
			return r.text(&c.Family, oneOf(familyNames...))
		case "about":
			return r.text(&c.About)
		case "follows":
			return r.text(&c.Follows, matches(nameForm, "is not a component"))
		case "always":
			return r.boolean(&c.Always)
		case "versions":
			return func(n *yaml.Node, path string) {
				r.named(n, path, versionForm, "is not a version", func(version string, value *yaml.Node, at string) {
					c.Versions[version] = r.release(value, at)
				})
			}
		}
		return r.recipe(&c.Recipe, key)
	})
	return c
}

func (r *reader) release(n *yaml.Node, path string) Release {
	var rel Release
	r.mapping(n, path, releaseFields, func(key string) field {
		switch key {
		case "kubernetes":
			return r.text(&rel.Kubernetes, isRange)
		case "sha256":
			return r.textMap(&rel.SHA256, oneOf("amd64", "arm64", anyArch), matches(hexDigest, "is not 64 digits in lower-case hex"))
		case "with":
			return r.textMap(&rel.With, matches(nameForm, "is not a component"), matches(versionForm, "is not a version"))
		}
		return r.recipe(&rel.Recipe, key)
	})
	return rel
}

func (r *reader) recipe(into *Recipe, key string) field {
	switch key {
	case "address":
		return r.text(&into.Address, template)
	case "digestAddress":
		return r.text(&into.DigestAddress, template)
	case "archive":
		return r.text(&into.Archive, oneOf("tar.gz"))
	case "chart":
		return r.text(&into.Chart, template)
	case "architectures":
		return r.texts(&into.Architectures, oneOf("amd64", "arm64"))
	case "packages":
		return r.texts(&into.Packages)
	case "unresolved":
		return r.text(&into.Unresolved)
	case "members":
		return func(n *yaml.Node, path string) {
			into.Members = []Member{}
			r.list(n, path, func(n *yaml.Node, at string) {
				var m Member
				r.pair(n, at, memberFields, r.text(&m.Path, memberPath, braces), r.text(&m.Name))
				into.Members = append(into.Members, m)
			})
		}
	case "images":
		return func(n *yaml.Node, path string) {
			into.Images = []Image{}
			r.list(n, path, func(n *yaml.Node, at string) {
				var i Image
				r.pair(n, at, imageFields, r.text(&i.Name), r.text(&i.Reference, reference, braces))
				into.Images = append(into.Images, i)
			})
		}
	}
	return nil
}

// named visits a mapping whose keys are names of one form.
func (r *reader) named(n *yaml.Node, path string, form *regexp.Regexp, why string, visit func(name string, value *yaml.Node, at string)) {
	r.each(n, path, func(key, value *yaml.Node, at string) {
		if !form.MatchString(key.Value) {
			r.add(key, at, key.Value+" "+why, "")
			return
		}
		visit(key.Value, value, at)
	})
}

// pair reads a mapping of two required fields.
func (r *reader) pair(n *yaml.Node, at string, fields []string, readers ...field) {
	met := 0
	r.mapping(n, at, fields, func(key string) field {
		i := slices.Index(fields, key)
		if i < 0 {
			return nil
		}
		met++
		return readers[i]
	})
	if n.Kind == yaml.MappingNode && met < len(fields) {
		r.add(n, at, "must have "+strings.Join(fields, " and "), "")
	}
}

func is(want string) func(string) string {
	return func(s string) string {
		if s != want {
			return "is not " + want
		}
		return ""
	}
}

func oneOf(words ...string) func(string) string {
	return func(s string) string {
		if !slices.Contains(words, s) {
			return "is not one of " + strings.Join(words, ", ")
		}
		return ""
	}
}

func matches(form *regexp.Regexp, why string) func(string) string {
	return func(s string) string {
		if !form.MatchString(s) {
			return why
		}
		return ""
	}
}
