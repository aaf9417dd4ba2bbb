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

func (r *reader) document(n *yaml.Node) *Document {
	doc := &Document{Components: map[string]*Component{}}
	r.mapping(n, "", map[string]field{
		"apiVersion": r.text(&doc.APIVersion, is(manifest.APIVersion)),
		"kind":       r.text(&doc.Kind, is(DocumentKind)),
		"components": func(n *yaml.Node, path string) {
			r.each(n, path, func(key, value *yaml.Node, at string) {
				if why := matches(nameForm, "is not a name in lower case")(key.Value); why != "" {
					r.add(key, at, key.Value+" "+why, "")
					return
				}
				doc.Components[key.Value] = r.component(value, at)
			})
		},
		"images": r.textMap(&doc.Images, reference, matches(imageDigest, "is not sha256: and 64 digits in lower-case hex")),
	})
	if n.Kind == yaml.MappingNode && (doc.APIVersion == "" || doc.Kind == "") && len(r.problems) == 0 {
		r.add(n, "", "does not say what it is", "begin with apiVersion: "+manifest.APIVersion+" and kind: "+DocumentKind)
	}
	return doc
}

func (r *reader) component(n *yaml.Node, path string) *Component {
	c := &Component{Versions: map[string]Release{}}
	var kind string
	known := r.recipe(&c.Recipe)
	known["kind"] = r.text(&kind, oneOf("binary", "file", "image", "chart", "package"))
	known["family"] = r.text(&c.Family, oneOf(familyNames...))
	known["about"] = r.text(&c.About)
	known["follows"] = r.text(&c.Follows, matches(nameForm, "is not a component"))
	known["always"] = r.truth(&c.Always)
	known["versions"] = func(n *yaml.Node, path string) {
		r.each(n, path, func(key, value *yaml.Node, at string) {
			if why := matches(versionForm, "is not a version")(key.Value); why != "" {
				r.add(key, at, key.Value+" "+why, "")
				return
			}
			c.Versions[key.Value] = r.release(value, at)
		})
	}
	r.mapping(n, path, known)
	c.Kind = manifest.Kind(kind)
	return c
}

func (r *reader) release(n *yaml.Node, path string) Release {
	var rel Release
	known := r.recipe(&rel.Recipe)
	known["kubernetes"] = r.text(&rel.Kubernetes, isRange)
	known["sha256"] = r.textMap(&rel.SHA256, oneOf("amd64", "arm64", anyArch), matches(hexDigest, "is not 64 digits in lower-case hex"))
	known["with"] = r.textMap(&rel.With, matches(nameForm, "is not a component"), matches(versionForm, "is not a version"))
	r.mapping(n, path, known)
	return rel
}

func (r *reader) recipe(into *Recipe) map[string]field {
	return map[string]field{
		"address":       r.text(&into.Address, template),
		"digestAddress": r.text(&into.DigestAddress, template),
		"archive":       r.text(&into.Archive, oneOf("tar.gz")),
		"chart":         r.text(&into.Chart, template),
		"architectures": r.texts(&into.Architectures, oneOf("amd64", "arm64")),
		"packages":      r.texts(&into.Packages),
		"unresolved":    r.text(&into.Unresolved),
		"members": func(n *yaml.Node, path string) {
			into.Members = []Member{}
			r.list(n, path, func(n *yaml.Node, at string) {
				var m Member
				r.mapping(n, at, map[string]field{"path": r.text(&m.Path, memberPath, braces), "name": r.text(&m.Name)})
				r.both(n, at, m.Path, m.Name, "path and name")
				into.Members = append(into.Members, m)
			})
		},
		"images": func(n *yaml.Node, path string) {
			into.Images = []Image{}
			r.list(n, path, func(n *yaml.Node, at string) {
				var i Image
				r.mapping(n, at, map[string]field{"name": r.text(&i.Name), "reference": r.text(&i.Reference, reference, braces)})
				r.both(n, at, i.Name, i.Reference, "name and reference")
				into.Images = append(into.Images, i)
			})
		},
	}
}

// both says that one of two texts that belong together is missing.
func (r *reader) both(n *yaml.Node, at, a, b, names string) {
	if (a == "" || b == "") && n.Kind == yaml.MappingNode {
		r.add(n, at, "lacks one of "+names, "")
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
