package installer_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/installer/pipeline"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
)

// elsewhere goes on from another machine, which has the config, the bundle and a
// way to the hosts, and nothing of any run before.
func (s *site) elsewhere() { s.Workdir = s.t.TempDir() }

// madeNoKeys: a deletion needs none, and makes none.
func (s *site) madeNoKeys() {
	s.t.Helper()
	if _, err := os.Stat(filepath.Join(s.Workdir, "certs")); !errors.Is(err, fs.ErrNotExist) {
		s.t.Errorf("a deletion made keys (%v)", err)
	}
}

// TestAnotherMachineFindsNothingToDo: what the cluster's hosts trust is brought
// back from them, and no host changes.
func TestAnotherMachineFindsNothingToDo(t *testing.T) {
	t.Parallel()
	each(t, []string{"single", "site", "masters", "masters-stacked", "etcd-hosts"}, func(s *site) {
		s.Must(pipeline.Create, "create")
		made, first := s.State(true), s.Workdir
		s.elsewhere()
		s.Must(pipeline.Create, "create from another machine")
		// This machine gets what it lacks: the kubeconfig, and what was applied.
		for _, ran := range s.ran() {
			if !strings.HasPrefix(ran, "kubernetes.fetch-kubeconfig ") && !strings.HasPrefix(ran, "kubernetes.keep-applied ") {
				s.t.Errorf("%s ran", ran)
			}
		}
		s.Same("a creation from another machine changes nothing", made, s.State(true))
		for _, dir := range []string{"certs/registry", "certs/etcd", "certs/kubernetes"} {
			s.sameKeys(filepath.Join(first, dir), filepath.Join(s.Workdir, dir))
		}
	})
}

// sameKeys: what is in the second folder is what is in the first, and nobody else
// may read its secrets.
func (s *site) sameKeys(first, second string) {
	s.t.Helper()
	all, err := os.ReadDir(second)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(first); err == nil {
			s.t.Errorf("nothing was brought to %s", second)
		}
		return
	}
	if err != nil {
		s.t.Fatal(err)
	}
	if st, err := os.Stat(second); err != nil || st.Mode().Perm() != 0o700 {
		s.t.Errorf("%s: %v, %v", second, st.Mode(), err)
	}
	for _, e := range all {
		if strings.HasPrefix(e.Name(), ".") {
			continue
		}
		want, err := os.ReadFile(filepath.Join(first, e.Name()))
		if err != nil {
			s.t.Errorf("%s is new: %v", e.Name(), err)
			continue
		}
		got, err := os.ReadFile(filepath.Join(second, e.Name()))
		if err != nil || string(got) != string(want) {
			s.t.Errorf("%s is another (%v)", e.Name(), err)
		}
		st, err := e.Info()
		if secret := !strings.HasSuffix(e.Name(), ".crt"); err != nil || secret && st.Mode().Perm() != 0o600 {
			s.t.Errorf("%s has mode %v, %v", e.Name(), st.Mode(), err)
		}
	}
	if !slices.ContainsFunc(all, func(e fs.DirEntry) bool { return e.Name() == "ca.key" || e.Name() == manifest.EncryptionName }) {
		s.t.Errorf("%s has no key", second)
	}
}

// advised is all that an error says to do.
func advised(err error) string {
	all := steps.Advice(err)
	var found steps.Findings
	if errors.As(err, &found) {
		for _, f := range found {
			all = append(all, f.Advice)
		}
	}
	return strings.Join(all, "\n")
}

// TestWithoutKeysNothingIsMadeAnew: where the hosts keep no keys, as those of an
// older kubexm, or others than this machine's, it is said what to do.
func TestWithoutKeysNothingIsMadeAnew(t *testing.T) {
	t.Parallel()
	for _, at := range []struct {
		host, dir, bring, move string
	}{
		{"r1", "/etc/kubexm/registry", "certs/registry from the workdir host that created the cluster", "certs/registry away and run the command again: kubexm then copies the CA from r1"},
		{"e1", "/etc/etcd/pki", "certs/etcd from the workdir host that created the cluster", "certs/etcd away and run the command again: kubexm then copies the CA from e"},
	} {
		t.Run(at.host, func(t *testing.T) {
			each(t, []string{"etcd-hosts"}, func(s *site) {
				s.Must(pipeline.Create, "create")
				refused := func(when, advice string) {
					s.t.Helper()
					before := s.State(true)
					err := s.Run(pipeline.Create, nil)
					if err == nil || !strings.Contains(advised(err), advice) {
						s.t.Errorf("%s: %v, %s", when, err, advised(err))
					}
					s.Same(when+": refused, and nothing changed", before, s.State(true))
				}
				first := s.Workdir
				s.elsewhere()
				s.Must(pipeline.Create, "create from another machine")
				other := s.t.TempDir() // one with keys of its own, as an older kubexm made them
				s.Workdir = other
				dir := filepath.Join(other, strings.Fields(at.bring)[0])
				if err := os.MkdirAll(dir, 0o700); err != nil {
					s.t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, "ca.crt"), []byte("another"), 0o600); err != nil {
					s.t.Fatal(err)
				}
				refused("another CA here", at.move)

				files := []string{"ca.key", "ca.crt"}
				for _, h := range []string{"r1", "e1", "e2", "e3"} {
					for _, f := range files {
						if h == "r1" || f == "ca.key" { // the members' certificate is in use
							s.Sims[h].RemoveAll(at.dir + "/" + f)
						}
					}
				}
				s.elsewhere()
				refused("no keys there", at.bring)
				s.Workdir = first
				s.Must(pipeline.Create, "create from the first machine")
				s.elsewhere()
				s.Must(pipeline.Create, "create from another machine, afterwards")
			})
		})
	}
}
