package installer_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mensylisir/kubexm/installer/pipeline"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
)

// TestARegistryThatStands: its images are sent with the config's user, the nodes
// pull from it, and a deletion leaves it alone and says so. What an index with gaps
// is there, the add-on names.
func TestARegistryThatStands(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		open   bool // this machine reaches it
		sparse int  // its answer to gaps
	}{
		"takes gaps, is reached from here":             {true, 0},
		"refuses gaps, is reached through a host only": {false, http.StatusBadRequest},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newSite(t, "registry-existing")
				s.ExternalRegistry.Open, s.ExternalRegistry.Sparse, s.ExternalRegistry.Code = c.open, c.sparse, "MANIFEST_BLOB_UNKNOWN"
				published := s.AddSparseImage()
				first := s.State(true)
				s.Must(pipeline.Create, "create")
				if through := slices.ContainsFunc(s.Warnings, func(w string) bool { return strings.Contains(w, "are sent through the SSH connection to m1") }); through == c.open {
					t.Errorf("said %q", s.Warnings)
				}
				if (s.ExternalRegistry.LocalConnections > 0) != c.open {
					t.Errorf("%d connections from here", s.ExternalRegistry.LocalConnections)
				}
				has := s.ExternalRegistry.Manifest("kube/quay.example/site/tools", "1.0")
				if (has == published) != (c.sparse == 0) || has == "" {
					t.Errorf("the registry has %s, published was %s", has, published)
				}
				for _, node := range []string{"m1", "w2"} {
					s.nodeFiles(node)
				}
				object := s.Kube.Object("apps/v1", "Deployment", "default", "tools")
				if text := s.Sims["m1"].Read("/var/lib/etcd/member/Deployment.apps/default/tools"); object == nil || !strings.Contains(text, "quay.example/site/tools@"+has) {
					t.Errorf("the add-on runs %s, and the registry has %s", text, has)
				}
				file := filepath.Join(s.Workdir, "registry-digests.json")
				if _, err := os.Stat(file); (err == nil) != (c.sparse != 0) {
					t.Errorf("the digests that are others there: %v", err)
				}

				if s.ExternalRegistry.OpenUploads != 0 {
					t.Errorf("%d uploads were begun and left", s.ExternalRegistry.OpenUploads)
				}
				uploads, made := s.ExternalRegistry.Uploads, s.State(true)
				s.Must(pipeline.Create, "create again")
				if ran := s.ran(); len(ran) > 0 || s.ExternalRegistry.Uploads != uploads {
					t.Errorf("a second creation ran %q, and sent %d blobs", ran, s.ExternalRegistry.Uploads-uploads)
				}
				s.Same("a second creation changes nothing", made, s.State(true))

				s.Warnings = nil
				s.Cluster.Spec.Registry.Auths = map[string]manifest.RegistryAuth{ // nothing is read again to take it away
					"harbor.site.example:8443": {Username: "robot", Password: manifest.NewSecret("file:nowhere"), CertsPath: "nowhere"}, "other.site.example": {PlainHTTP: true},
				}
				s.Must(pipeline.Delete, "delete")
				s.Same("a deletion gives back what was there", first, s.State(true))
				if got := s.ExternalRegistry.Manifest("kube/quay.example/site/tools", "1.0"); got != has {
					t.Errorf("after the deletion the registry has %s", got)
				}
				if !slices.ContainsFunc(s.Warnings, func(w string) bool {
					return strings.Contains(w, "images remain in the registry harbor.site.example:8443/kube")
				}) {
					t.Errorf("the deletion said %q", s.Warnings)
				}
				if _, err := os.Stat(file); err == nil {
					t.Error("the digests are left")
				}
			})
		})
	}
}

// nodeFiles looks at what a node pulls with.
func (s *site) nodeFiles(node string) {
	s.t.Helper()
	hosts := s.Sims[node].Read("/etc/containerd/certs.d/registry.k8s.io/hosts.toml")
	for _, want := range []string{`"https://harbor.site.example:8443/v2/kube/registry.k8s.io"`, "Authorization = [\"Basic ", `ca = "/etc/containerd/certs.d/kubexm-registry.crt"`} {
		if !strings.Contains(hosts, want) {
			s.t.Errorf("%s: %s is not in\n%s", node, want, hosts)
		}
	}
	for _, file := range []string{"registry.k8s.io", "harbor.site.example:8443", "_default", "other.site.example"} {
		if f, ok := s.Sims[node].File("/etc/containerd/certs.d/" + file + "/hosts.toml"); !ok || f.Mode != 0o600 {
			s.t.Errorf("%s: hosts.toml of %s has mode %v", node, file, f.Mode)
		}
	}
	if other := s.Sims[node].Read("/etc/containerd/certs.d/other.site.example/hosts.toml"); !strings.Contains(other, `server = "http://other.site.example"`) {
		s.t.Errorf("%s: %s", node, other)
	}
	if etc := s.Sims[node].Read("/etc/hosts"); !strings.Contains(etc, "192.0.2.99 harbor.site.example") {
		s.t.Errorf("%s: /etc/hosts: %s", node, etc)
	}
}

// found gives all that an error says, with its advice.
func found(err error) string {
	switch x := err.(type) { //nolint:errorlint // it walks the tree itself
	case steps.Findings:
		text := ""
		for _, f := range x {
			text += f.Check + " on " + f.Host + ": " + f.What + "; " + f.Advice + "\n"
		}
		return text
	case interface{ Unwrap() []error }:
		text := ""
		for _, e := range x.Unwrap() {
			text += found(e)
		}
		return text
	case interface{ Unwrap() error }:
		return found(x.Unwrap())
	}
	return fmt.Sprintln(err)
}

// TestARegistryThatRefuses is found before anything is changed.
func TestARegistryThatRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*site)
		want   []string
	}{
		"another password": {func(s *site) { s.ExternalRegistry.Password = "other" }, []string{"registryd.check-pull", "m1", "w2", "401", "auths"}},
		"no project":       {func(s *site) { s.ExternalRegistry.Project = "others/" }, []string{"push to kube/registry.k8s.io/", "404", "namespaceOverride"}},
		"tokens alone":     {func(s *site) { s.ExternalRegistry.Tokens = true }, []string{"only tokens"}},
		"nobody there":     {func(s *site) { s.ExternalRegistry.Address = "192.0.2.98:8443" }, []string{"nobody is there", "curl -v https://harbor.site.example:8443/v2/"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newSite(t, "registry-existing")
				c.change(s)
				first := s.State(true)
				err := s.Run(pipeline.Create, nil)
				if err == nil {
					t.Fatal("the registry was taken")
				}
				text := found(err)
				for _, want := range c.want {
					if !strings.Contains(text, want) {
						t.Errorf("%q is not in\n%s", want, text)
					}
				}
				if strings.Contains(text, "canary-of-the-registry") {
					t.Error("the password was shown")
				}
				s.Same("what a check finds changes nothing", first, s.State(true))
			})
		})
	}
}
