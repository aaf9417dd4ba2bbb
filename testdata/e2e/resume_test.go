package e2e

import (
	"testing"
	"time"
)

// TestResume kills an install while a worker joins, and has --resume go on: it passes
// over what was seen done, except on a host that has booted since.
func TestResume(t *testing.T) {
	s, config := newScenarioSite(t, 2, "pair.yaml")
	before := s.inventories(t)
	install := []string{"install", "--bundle", s.bundle, "--allow-unsigned", "-f", config}
	resume := append([]string{"install", "--resume"}, install[1:]...)

	if !s.killedAt(t, moment{step: "containerd.start", host: "h2"}, func(told) {}, install...) {
		t.Fatal("the run had ended before it was to be killed")
	}
	s.power(t, "h2")
	joins := moment{step: "kubeadm.join-worker", host: "h2", after: time.Second}
	if !s.killedAt(t, joins, func(told) {}, resume...) {
		t.Fatal("the resumed run had ended before it was to be killed")
	}
	said(t, s.kubexm(t, resume...), 0, "resumed: ", "not checked again; completed according to ", "create of cluster site: done")
	said(t, s.install(t, config), 0, "0 steps ran")
	s.eventually(t, "h1", atHome+"test $("+kubectl+"get nodes --no-headers | grep -cw Ready) = 2")

	// A run that ended well leaves nothing to do; what a boot undid is done all the same.
	s.power(t, "h2")
	said(t, s.kubexm(t, resume...), 0, "resumed: ", "create of cluster site: done")
	s.eventually(t, "h1", atHome+"test $("+kubectl+"get nodes --no-headers | grep -cw Ready) = 2")

	said(t, s.kubexm(t, "delete", "cluster", "-f", config, "--yes"), 0, "delete of cluster site: done")
	s.nothingLeft(t)
	s.asBefore(t, before)
}
