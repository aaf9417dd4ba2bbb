package manifest

import "strings"

// FindField finds a field of the config by its path or a second spelling of it, which is
// alias then.
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

// FieldsNamed gives the paths of the fields whose last name is that of path, and of all.
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

// Explanation is a field as people and programs read it.
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

// SubField is a field of a mapping in one line.
type SubField struct {
	Name    string `json:"name"`
	Type    string `json:"type"`
	Summary string `json:"summary"`
}

// Explain says what a field means.
func Explain(f Field) Explanation {
	e := Explanation{
		Field: f.Path, Type: f.Type(), Required: f.Required, Default: f.DefaultText(), Allowed: f.Allowed(),
		AlsoWritten: OtherSpellings(f.Path), Meaning: f.Meaning(), NotYetBuilt: WaitingFor(f.Path),
	}
	for _, x := range f.Effect.Each() {
		e.Effect = append(e.Effect, string(x))
	}
	if len(e.Effect) > 0 && e.NotYetBuilt == "" {
		e.Change, e.Install = f.Effect.Says(Anywhere), f.Install.Does(f.Effect)
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
		for _, x := range sub.Fields { // the document itself has little to show
			e.Fields = append(e.Fields, SubField{x.Path, x.Type(), x.Summary()})
		}
	}
	return e
}
