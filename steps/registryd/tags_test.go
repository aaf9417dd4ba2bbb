package registryd_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/registryd"
)

// push overwrites a tag of a registry, as anybody may who has its login.
func push(t *testing.T, s *standing, repository, tag, text string) {
	t.Helper()
	srv := s.kase.Artifacts.(*imageBundle)
	m := srv.put(t, "application/vnd.oci.image.index.v1+json", []byte(text))
	q, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "https://example.com/v2/"+repository+"/manifests/"+tag, strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("Content-Type", m.MediaType)
	q.SetBasicAuth("robot", "canary-x")
	w := &answered{header: http.Header{}}
	s.ServeHTTP(w, q)
	if w.status != http.StatusCreated {
		t.Fatalf("the push was answered with %d", w.status)
	}
}

// answered notes a status.
type answered struct {
	header http.Header
	status int
}

func (a *answered) Header() http.Header         { return a.header }
func (a *answered) Write(p []byte) (int, error) { return len(p), nil }
func (a *answered) WriteHeader(status int)      { a.status = status }

// TestAChangedTagIsNamed: a node asks before it pulls, and names each tag that
// stands for another image than the bundle's, or for none; the next filling says so
// as well, and puts the bundle's image back.
func TestAChangedTagIsNamed(t *testing.T) {
	s := stand(t, true)
	a := s.cluster.Spec.Registry.Auths["example.com:8443"]
	a.PullUsername, a.PullPassword = "reader", manifest.NewSecret("canary-y")
	s.cluster.Spec.Registry.Auths["example.com:8443"] = a
	s.Readers = map[string]string{"reader": "canary-y"}
	seed := registryd.Seed(s.cluster, nil)
	if err := seed.Run(t.Context(), s.host); err != nil {
		t.Fatal(err)
	}
	pins := s.kase.Artifacts.(*imageBundle).pins
	ask := func() error { return registryd.TagsAt(s.cluster)(t.Context(), s.host, pins) }
	if err := ask(); err != nil {
		t.Fatalf("before anybody pushed: %v", err)
	}
	push(t, s, "kube/registry.k8s.io/pause", "3.10", `{"manifests":[]}`)
	err := ask()
	var changed *registryd.TagError
	if !errors.As(err, &changed) || changed.Reference != "registry.k8s.io/pause:3.10" || changed.Want != pins[0].Digest || changed.Digest == changed.Want || changed.Digest == "" {
		t.Errorf("%+v (%v)", changed, err)
	}
	if err != nil && strings.Contains(err.Error(), "nginx") {
		t.Errorf("a tag that nobody changed is named: %v", err)
	}
	if got := strings.Join(steps.Advice(err), " "); !strings.Contains(got, "kubexm install") {
		t.Errorf("advice %q", got)
	}
	if err := seed.Run(t.Context(), s.host); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(s.log.String(), changed.Digest) {
		t.Errorf("the filling does not say what was there:\n%s", &s.log)
	}
	if err := ask(); err != nil {
		t.Errorf("after the bundle's image was put back: %v", err)
	}
	s.Forget("kube/registry.k8s.io/pause", "3.10")
	if err := ask(); err == nil || !strings.Contains(err.Error(), "does not exist") {
		t.Errorf("a tag that is gone: %v", err)
	}
}

// TestALoginOfNodesThatCanPush is a warning, with the user and what to do.
func TestALoginOfNodesThatCanPush(t *testing.T) {
	for name, c := range map[string]struct {
		user, password string
		warned         string
	}{
		"the same for both":      {"", "", "the nodes' login (user robot) may push"},
		"its own":                {"reader", "canary-y", ""},
		"its own, which can too": {"robot", "canary-x", "the nodes' login (user robot) may push"},
	} {
		t.Run(name, func(t *testing.T) {
			s := stand(t, true)
			s.Readers = map[string]string{"reader": "canary-y"}
			a := s.cluster.Spec.Registry.Auths["example.com:8443"]
			a.PullUsername, a.PullPassword = c.user, manifest.NewSecret(c.password)
			s.cluster.Spec.Registry.Auths["example.com:8443"] = a
			var said []string
			step := registryd.CheckPush(s.cluster)
			s.kase.Report = func(f steps.Finding) { said = append(said, f.What+"; "+f.Advice) }
			if found := checks(t, s, step); len(found) > 0 {
				t.Errorf("%+v", found)
			}
			got := strings.Join(said, "\n")
			if !strings.Contains(got, c.warned) || (got == "") != (c.warned == "") || c.warned != "" && !strings.Contains(got, "pullUsername") {
				t.Errorf("warned %q, want %q", got, c.warned)
			}
			if s.OpenUploads != 0 || s.Uploads+s.Puts != 0 {
				t.Errorf("a check left something: %d, %d", s.OpenUploads, s.Uploads+s.Puts)
			}
			if found := checks(t, s, registryd.CheckPull(s.cluster)); len(found) > 0 {
				t.Errorf("the nodes cannot pull: %+v", found)
			}
		})
	}
}
