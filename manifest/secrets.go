package manifest

import (
	"reflect"

	"github.com/mensylisir/kubexm/manifest/document"
)

// Secrets returns all secrets of the config by path. It finds every field of type Secret, so
// that callers that mask secrets miss none.
func (c *Cluster) Secrets() map[string]Secret {
	out := map[string]Secret{}
	secretsIn(reflect.ValueOf(*c), "", out)
	return out
}

func secretsIn(v reflect.Value, path string, out map[string]Secret) {
	switch {
	case v.Type() == secretType:
		if s, ok := v.Interface().(Secret); ok && !s.IsZero() {
			out[path] = s
		}
	case v.Kind() == reflect.Pointer && !v.IsNil():
		secretsIn(v.Elem(), path, out)
	case v.Kind() == reflect.Struct && v.Type() != reflect.TypeFor[Platform]():
		for _, f := range document.Keys(v.Type()) {
			secretsIn(v.FieldByIndex(f.Index), document.Join(path, f.Name), out)
		}
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			secretsIn(v.Index(i), document.Indexed(path, i), out)
		}
	case v.Kind() == reflect.Map:
		for _, k := range v.MapKeys() {
			secretsIn(v.MapIndex(k), document.Join(path, k.String()), out)
		}
	}
}
