package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/mensylisir/kubexm/installer"
	"github.com/mensylisir/kubexm/installer/pipeline"
	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/installer/site"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps/cluster"
)

const consentConfig = `apiVersion: kubexm.mensylisir.io/v1alpha1
kind: Cluster
metadata: {name: demo}
spec:
  hosts:
    - {name: m1, address: 192.0.2.1}
    - {name: w1, address: 192.0.2.2}
    - {name: w2, address: 192.0.2.3}
  roleGroups: {master: [m1], worker: [w1, w2]}
  kubernetes: {version: v1.34.10}
  network: {plugin: flannel}
`

// TestConsentIsOneScreen: a user at a terminal reads what is lost and on which hosts, and answers. Without a
// terminal kubexm refuses, as it does after "no".
func TestConsentIsOneScreen(t *testing.T) {
	c, problems := manifest.Decode(strings.NewReader(consentConfig))
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	p, _ := pipeline.Named("node-delete")
	g, err := plan.Build(p, pipeline.ScopeOf(p, c, []string{"w2", "w1"}))
	if err != nil {
		t.Fatal(err)
	}
	w, err := installer.NewWorkdir(t.TempDir(), "demo")
	if err != nil {
		t.Fatal(err)
	}
	ended := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	for _, e := range []cluster.HistoryEntry{
		{Operation: cluster.Operation{ID: "op-1", Kind: "node-delete"}, End: ended, Took: "1m12s", Outcome: "done"},
		{Operation: cluster.Operation{ID: "op-2", Kind: "node-delete"}, End: ended, Took: "3s", Outcome: "failed"},
		{Operation: cluster.Operation{ID: "op-3", Kind: "create"}, End: ended, Took: "9m", Outcome: "done"},
	} {
		if err := cluster.AddWorkdirHistory(w.Dir, e); err != nil {
			t.Fatal(err)
		}
	}
	s := &siteRun{Site: &site.Site{Request: site.Request{Options: installer.Options{Cluster: c}, Pipeline: p}, Graph: g, Session: &installer.Session{Workdir: w}}}

	for answer, agrees := range map[string]bool{"y": true, "n": false} {
		master, slave := pseudoTerminal(t)
		if _, err := master.WriteString(answer + "\n"); err != nil {
			t.Fatal(err)
		}
		var screen bytes.Buffer
		a := &app{in: slave, err: &screen}
		if err := a.consented(&siteFlags{}, s); err != nil {
			t.Errorf("refused before the question: %v", err)
		}
		if err := a.consent(t.Context(), &siteFlags{}, s); (err == nil) != agrees || err != nil && !strings.Contains(err.Error(), "node-delete of cluster demo ") {
			t.Errorf("%q: %v", answer, err)
		}
		for _, want := range []string{
			"node-delete of cluster demo ", "HOST        DISTURBED BY", "one master  ", "\n  w2          ", "kubeadm.reset-worker",
			"in this order", "the last node-delete took 1m12s, on 2026-03-04", "Continue? [y/N]",
		} {
			if !strings.Contains(screen.String(), want) {
				t.Errorf("%q is not in\n%s", want, screen.String())
			}
		}
		if strings.Contains(screen.String(), "\n  m1 ") || strings.Count(screen.String(), "\n") > 12 {
			t.Errorf("the screen is\n%s", screen.String())
		}
	}

	a := &app{in: strings.NewReader("y\n")}
	if err := a.consented(&siteFlags{}, s); err == nil {
		t.Error("an answer that no terminal gave was taken")
	}
	for _, f := range []*siteFlags{{yes: true}, {dryRun: true}} {
		if err := a.consented(f, s); err != nil {
			t.Error(err)
		}
	}
}
