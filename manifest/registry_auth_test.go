package manifest

import "testing"

func TestAuthOfARegistry(t *testing.T) {
	r := Registry{PrivateRegistry: "a.example:443", NamespaceOverride: "kube", Auths: map[string]RegistryAuth{
		"a.example": {Username: "a"}, "b.example:443": {Username: "b"}, "c.example:5000": {Username: "c"},
	}}
	for host, want := range map[string]string{
		"a.example": "a", "a.example:443": "a", "b.example": "b", "b.example:443": "b", "c.example:5000": "c", "c.example": "", "a.example:5000": "", "d.example": "",
	} {
		if got := r.Auth(host).Username; got != want {
			t.Errorf("%s: %q, want %q", host, got, want)
		}
	}
	if got := r.Namespaced(); got != "a.example:443/kube" {
		t.Errorf("images are at %s", got)
	}
}
