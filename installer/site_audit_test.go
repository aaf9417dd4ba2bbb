package installer_test

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mensylisir/kubexm/installer/audit"
	"github.com/mensylisir/kubexm/installer/pipeline"
	"github.com/mensylisir/kubexm/steps/runner"
)

// record puts all that runs do to the site's hosts on a log.
func (s *site) record() {
	s.t.Helper()
	var err error
	if s.Log, err = audit.Open(s.audit(), s.Cluster.Metadata.Name, "alice@wd1", "v1.2.3"); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = s.Log.Close() }) // a test may have closed it
}

func (s *site) audit() string { return filepath.Join(s.Workdir, "audit.jsonl") }

// TestWholeClusterIsOnRecord makes a cluster: each step that ran has its commands
// on the log, each file that was uploaded its hash, and the log is whole.
func TestWholeClusterIsOnRecord(t *testing.T) {
	t.Parallel()
	s := newSite(t, "masters")
	s.record()
	s.Must(pipeline.Create, "create")
	f, err := os.Open(s.audit())
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	report, err := audit.Verify(f, []audit.Anchor{{Head: s.Log.Head(), From: "the test"}})
	if err != nil || len(report.Problems) > 0 || len(report.Open) > 0 || report.Confirmed != report.Head.Lines {
		t.Fatalf("%+v, %v", report, err)
	}
	seen := map[string]bool{}
	var put []audit.Line
	if _, err := f.Seek(0, 0); err != nil {
		t.Fatal(err)
	}
	err = audit.Show(f, audit.Filter{}, func(x audit.Line, text []byte) error {
		seen[x.Step+"@"+x.Host] = true
		if x.Verb == "fs.put" && x.Type == audit.TypeDid {
			put = append(put, x)
		}
		// The password is a word of documents too, and such a line says that it held one.
		if strings.Contains(strings.ReplaceAll(string(text), `"secret":true`, ""), "secret") {
			t.Errorf("a password is in %s", text)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range s.Events {
		// What keeps a document on this machine asks no host.
		if e.Outcome == "ran" && e.Step != "kubernetes.keep-applied" && !seen[e.Node+"@"+e.Host] {
			t.Errorf("%s ran on %s, and nothing of it is on record", e.Node, e.Host)
		}
	}
	if len(put) < 10 {
		t.Errorf("%d uploads", len(put))
	}
	for _, x := range put {
		if c := x.Stdin; c == nil || !c.FromBundle || *x.Exit != 0 {
			t.Errorf("%s on %s: %+v was not hashed there", x.Argv[0], x.Host, c)
		}
	}
}

// TestProgramsAreHashedAgain: another program of the same size in the place of one
// of the bundle's is found by the next run, and the right one is there again.
func TestProgramsAreHashedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, "single")
		s.record()
		s.Must(pipeline.Create, "create")
		f, err := os.Open(s.audit())
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		type program struct{ host, path, sum string }
		var all []program
		if err := audit.Show(f, audit.Filter{}, func(x audit.Line, _ []byte) error {
			if x.Verb == "fs.put" && strings.HasPrefix(x.Argv[0], "/usr/local/") && path.Base(x.Argv[0]) == "bin" {
				for f := range slices.Chunk(x.Argv[3:], 3) {
					all = append(all, program{x.Host, path.Join(x.Argv[0], f[0]), f[2]})
				}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		for _, p := range all {
			r := runner.New(s.Sims[p.host], runner.Options{})
			good, err := r.ReadFile(t.Context(), p.path)
			if err != nil {
				t.Fatal(err)
			}
			s.Sims[p.host].AddFile(p.path, strings.Repeat("x", len(good)), 0o755)
		}
		s.Must(pipeline.Create, "create again")
		var names []string
		for _, p := range all {
			names = append(names, path.Base(p.path))
			if sum, err := runner.New(s.Sims[p.host], runner.Options{}).Digest(t.Context(), p.path); err != nil || sum != p.sum {
				t.Errorf("%s on %s is %s, %v", p.path, p.host, sum, err)
			}
		}
		for _, want := range []string{"kubeadm", "kubelet", "kubectl", "containerd", "crictl"} {
			if !slices.Contains(names, want) {
				t.Errorf("%s is not among those that were uploaded: %v", want, names)
			}
		}
	})
}
