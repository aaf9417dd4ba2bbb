package installer

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/installer/audit"
	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/connector/sshtest"
	"github.com/mensylisir/kubexm/steps/op"
)

// sessionOf is a session whose only host is reached already.
func sessionOf(t *testing.T, c *manifest.Cluster, node1 *steps.Host) *Session {
	t.Helper()
	s, err := newSession(t.Context(), Options{Cluster: c, Base: t.TempDir(), LookupEnv: func(string) (string, bool) { return "", false }, Version: "v1.2.3"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	s.hosts["node1"] = node1
	return s
}

// TestRunIsOnRecord: over a real wire each command is on the log with its step, and
// the journal knows where the log ended.
func TestRunIsOnRecord(t *testing.T) {
	t.Parallel()
	server := sshtest.Start(t, sshtest.Config{Password: "secret"})
	o := options(t, clusterOf(t, host("a", server, "")), server)
	o.Version = "v1.2.3"
	s, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	step := op.Check("x.say", func(ctx context.Context, h *steps.Host) (steps.Findings, error) {
		_, err := h.Exec(ctx, "echo", "secret")
		return nil, err
	})
	g, err := plan.Build(plan.Pipeline{Name: "test", Modules: []plan.Module{{Name: "m", Plan: plan.Sequential(plan.Task{Name: "t", Plan: func(s plan.Scope) plan.Fragment {
		return plan.On(s.Hosts(), step)
	}})}}}, plan.Scope{Want: o.Cluster})
	if err != nil {
		t.Fatal(err)
	}
	journal, err := s.Run(t.Context(), g, RunOptions{DryRun: true, Parallel: 1}) // the host is this machine
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	text, err := os.ReadFile(s.Workdir.Audit())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"type":"head","who":"` + Who(o.LookupEnv) + `","kubexm":"v1.2.3","cluster":"demo"`,
		`"host":"a","verb":"host.facts"`,
		`"type":"run",`, `"message":"dry run of test"`,
		`"type":"begin",`, `"step":"m/t/x.say","verb":"exec","argv":["echo","***"]`,
		`"type":"end",`, `"message":"dry run of test: done"`,
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %s", want)
		}
	}
	if strings.Contains(string(text), "secret\"") {
		t.Error("a password is in it")
	}
	report, err := Verify(s.Workdir, nil)
	if err != nil || len(report.Problems) > 0 || report.From != journal || report.Confirmed != report.Head.Lines {
		t.Errorf("%+v, %v", report, err)
	}
	// The end is cut off; the journal tells.
	cut := text[:strings.LastIndex(strings.TrimSuffix(string(text), "\n"), "\n")+1]
	if err := os.WriteFile(s.Workdir.Audit(), cut, 0o600); err != nil {
		t.Fatal(err)
	}
	if report, err = Verify(s.Workdir, nil); err != nil || len(report.Problems) != 1 || !strings.Contains(report.Problems[0], "the end is cut off: "+journal) {
		t.Errorf("%+v, %v", report, err)
	}
	if _, err := Verify(Workdir{Dir: filepath.Join(t.TempDir(), "none")}, nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("of no cluster: %v", err)
	}
	if _, err := Verify(s.Workdir, []audit.Anchor{{Head: audit.Head{Lines: 1, SHA256: "other"}, From: "the receipt"}}); err != nil {
		t.Error(err)
	}
}
