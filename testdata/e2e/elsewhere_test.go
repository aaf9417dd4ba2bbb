package e2e

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/mensylisir/kubexm/testdata/fair"
	"github.com/mensylisir/kubexm/testdata/lab"
)

// elsewhere is the same site seen from another host that kubexm may be run from,
// with a folder of its own.
func (s *labSite) elsewhere(t testing.TB) *labSite {
	t.Helper()
	other := *s
	other.dir = t.TempDir()
	other.from = s.Elsewhere()
	return &other
}

// acceptedAt finds when a host was first heard.
var acceptedAt = regexp.MustCompile(`(?m)^time=(\S+) level=WARN msg="accepted a new host key"`)

// twoAtOnce has somebody elsewhere begin while a run is under way, and again when
// that run was killed.
func (s *labSite) twoAtOnce(t testing.TB, args ...string) {
	t.Helper()
	other := s.elsewhere(t)
	asked := false
	r := s.watched(t, func(e told, kill func()) {
		if asked || e.Outcome != "ran" {
			return
		}
		asked = true
		clock := fair.Start()
		second := other.watched(t, func(told, func()) {}, args...)
		ended := time.Now()
		said(t, second, 1, "another run works on this cluster (lock on "+s.masters[0]+"): process ", " of root on ", " since 20", "try ")
		// The bundle is read before any host is called, which takes as long as it is
		// large, and longer beside the first run.
		called := ended
		if m := acceptedAt.FindStringSubmatch(second.stderr); m != nil {
			called, _ = time.Parse(time.RFC3339, m[1])
		} else {
			t.Errorf("no host's key was accepted:\n%s", second.stderr)
		}
		clock.Limit(t, ended.Sub(called), 2*time.Second+time.Second) // the log's times are cut to seconds
		if strings.Contains(second.stderr, "  log ") {
			t.Error("a log is named where none was written")
		}
		t.Logf("refused after %s, %s after hosts were called:\n%s", second.took.Round(10*time.Millisecond), ended.Sub(called).Round(10*time.Millisecond), second.stderr)
		kill()
	}, args...)
	if !asked || r.code != -1 {
		t.Fatalf("the first run was to be killed: exit %d\n%s", r.code, r.stderr)
	}
	began, let := time.Now(), false
	r = other.watched(t, func(e told, kill func()) {
		if !let && e.Outcome == "started" {
			let = true
			t.Logf("let in after %s", time.Since(began).Round(10*time.Millisecond))
			kill()
		}
	}, args...)
	if !let {
		t.Errorf("a run that was killed keeps others away: exit %d\n%s", r.code, r.stderr)
	}
}

// host is where kubexm is run from.
func (s *labSite) host() lab.Workdir {
	if s.from.Netns == "" {
		return s.Workdir()
	}
	return s.from
}
