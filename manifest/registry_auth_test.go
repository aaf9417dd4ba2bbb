package manifest

import (
	"strings"
	"testing"
)

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

// TestNodesPullAsTheirOwnUser: the login that pushes stays on the workdir host,
// however the registry's port is written, and other registries have one login.
func TestNodesPullAsTheirOwnUser(t *testing.T) {
	r := Registry{Type: "external", PrivateRegistry: "a.example", Auths: map[string]RegistryAuth{
		"a.example:443": {Username: "push", PullUsername: "pull", CertsPath: "certs"}, "b.example": {Username: "b", PullUsername: "other"},
	}}
	for host, want := range map[string]string{"a.example": "pull", "a.example:443": "pull", "b.example": "b", "c.example": ""} {
		if got := r.PullAuth(host).Username; got != want {
			t.Errorf("%s: %q, want %q", host, got, want)
		}
	}
	if got := r.PullAuth("a.example").CertsPath; got != "certs" {
		t.Errorf("the rest of it is lost: %q", got)
	}
	if got := r.Auth("a.example").Username; got != "push" {
		t.Errorf("who pushes is %q", got)
	}
}

// TestALoginForPullingIsNoFinding: what the warnings ask for is not warned of.
func TestALoginForPullingIsNoFinding(t *testing.T) {
	_, problems := Decode(strings.NewReader(header + `
  kubernetes: {version: v1.34.10}
  registry:
    privateRegistry: a.example
    auths: {'a.example:443': {username: robot, password: p, pullUsername: reader, pullPassword: q, certsPath: certs}}
`))
	for _, p := range problems {
		if strings.Contains(p.Path, "registry") {
			t.Error(p)
		}
	}
}
