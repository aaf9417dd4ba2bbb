package e2e

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mensylisir/kubexm/testdata/fair"
)

// TestPreflightOnHosts looks at four real hosts that are as they have to be: no
// error, in less than five seconds, and nothing is left on them of it.
func TestPreflightOnHosts(t *testing.T) {
	s := newLabSite(t)
	config := filepath.Join(s.dir, "config.yaml")
	for _, more := range [][]string{nil, {"--bundle", s.bundle, "--allow-unsigned"}, {"--bundle", s.bundle, "--allow-unsigned", "-o", "json"}} {
		clock := fair.Start()
		r := s.kubexm(t, append([]string{"preflight", "-f", config}, more...)...)
		said(t, r, 0)
		if strings.Contains(r.stdout, `"severity":"error"`) {
			t.Error("an error, and exit code 0")
		}
		clock.Limit(t, r.took, 5*time.Second) // two, where nothing else is at work
		if len(more) == 4 {
			last := r.stdout[strings.LastIndexByte(strings.TrimSpace(r.stdout), '\n')+1:]
			var line struct {
				Type    string
				Summary struct {
					Pipeline string
					Steps    struct{ Total, Checked, Failed, Ran int }
				}
			}
			if err := json.Unmarshal([]byte(last), &line); err != nil {
				t.Fatal(err)
			}
			if n := line.Summary.Steps; line.Summary.Pipeline != "preflight" || n.Checked != n.Total || n.Total < 4*10 || n.Failed+n.Ran > 0 {
				t.Errorf("%+v", line)
			}
		}
	}
	for _, h := range s.Hosts {
		if got := s.on(t, h.Name, "ls -d /run/kubexm /var/lib/kubexm 2>/dev/null || true"); got != "" {
			t.Errorf("%s: left %s", h.Name, got)
		}
	}
}
