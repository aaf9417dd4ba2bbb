package manifest

import "strings"

// FindField returns the field of the config with a path. If path is a second spelling, alias
// is path.
func FindField(path string) (f Field, alias string, ok bool) {
	root := ConfigFields()
	if f, ok := root.Find(path); ok {
		return f, "", true
	}
	for _, a := range Aliases() {
		rest, ok := strings.CutPrefix(path, a.From)
		if !ok || a.From == a.To || rest != "" && rest[0] != '.' {
			continue
		}
		if f, ok := root.Find(a.To + rest); ok {
			return f, path, true
		}
	}
	return f, "", false
}

// FieldsNamed returns the paths of the fields with the same last name as path, and the paths
// of all fields.
func FieldsNamed(path string) (same, all []string) {
	last := path[strings.LastIndexByte(path, '.')+1:]
	for _, f := range ConfigFields().All() {
		if f.Name == last && last != "" {
			same = append(same, f.Path)
		}
		all = append(all, f.Path)
	}
	return same, all
}

// Explanation describes a field, for `kubexm config explain` in text and JSON.
type Explanation struct {
	Field       string     `json:"field"`
	Type        string     `json:"type"`
	Required    bool       `json:"required,omitempty"`
	Default     string     `json:"default,omitempty"`
	Allowed     string     `json:"allowed,omitempty"`
	AlsoWritten []string   `json:"alsoWritten,omitempty"`
	Meaning     string     `json:"meaning"`
	Effect      []string   `json:"effect,omitempty"`
	Change      string     `json:"change,omitempty"`
	Install     string     `json:"install,omitempty"`
	NotYetBuilt string     `json:"notYetBuilt,omitempty"`
	Fields      []SubField `json:"fields,omitempty"`
}

// SubField describes a field of a mapping in one line.
type SubField struct {
	Name    string `json:"name"`
	Type    string `json:"type"`
	Summary string `json:"summary"`
}

// Explain returns the description of a field.
func Explain(f Field) Explanation {
	e := Explanation{
		Field: f.Path, Type: f.Type(), Required: f.Required, Default: f.DefaultText(), Allowed: f.Allowed(),
		AlsoWritten: OtherSpellings(f.Path), Meaning: f.Meaning(), NotYetBuilt: MissingFeature(f.Path),
	}
	for _, x := range f.Effect.Each() {
		e.Effect = append(e.Effect, string(x))
	}
	if len(e.Effect) > 0 && e.NotYetBuilt == "" {
		e.Change, e.Install = f.Effect.Describe(AnyHosts), f.Install.Describe(f.Effect)
	}
	if f.Scalar != "" {
		e.AlsoWritten = append(e.AlsoWritten, "a plain value, which is its "+f.Scalar)
	}
	if f.ShortForm != "" {
		e.AlsoWritten = append(e.AlsoWritten, f.ShortForm)
	}
	for _, sub := range f.Fields {
		e.Fields = append(e.Fields, SubField{sub.Name, sub.Type(), sub.Summary()})
		if f.Path != "" {
			continue
		}
		for _, x := range sub.Fields { // the document itself has few fields: list the next level too
			e.Fields = append(e.Fields, SubField{x.Path, x.Type(), x.Summary()})
		}
	}
	return e
}
