package e2e

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// downRow is a command that is given while the first master has no power.
type downRow struct {
	args  []string
	ends  int  // exit code where docs/hosts-down.md says that it ends
	wipes bool // it takes the cluster away where it goes on
}

// downRows are the commands of docs/hosts-down.md.
func (s *walkSite) downRows() map[string]downRow {
	f := []string{"-f", s.configFile()}
	with := func(more ...string) []string { return append(more, f...) }
	return map[string]downRow{
		"kubexm get nodes":                      {args: with("get", "nodes")},
		"kubexm get clusters -f":                {args: with("get", "clusters")},
		"kubexm get operations -f":              {args: with("get", "operations")},
		"kubexm get releases":                   {args: with("get", "releases"), ends: 1},
		"kubexm get endpoint":                   {args: with("get", "endpoint"), ends: 1},
		"kubexm operation show":                 {args: with("operation", "show")},
		"kubexm operation abandon":              {args: with("operation", "abandon", "--yes")},
		"kubexm kubeconfig":                     {args: with("kubeconfig")},
		"kubexm diff":                           {args: with("diff"), ends: 3},
		"kubexm install":                        {args: s.creation(), ends: 3},
		"kubexm delete cluster":                 {args: with("delete", "cluster", "--yes"), ends: 3, wipes: true},
		"kubexm delete cluster --preserve-data": {args: with("delete", "cluster", "--preserve-data", "--yes"), ends: 3, wipes: true},
		"kubexm reset":                          {args: with("reset", "--yes"), ends: 3, wipes: true},
		"kubexm restart":                        {args: with("restart", "all", "--yes"), ends: 3},
		"kubexm preflight":                      {args: with("preflight"), ends: 3},
		"kubexm hosts prepare":                  {args: with("hosts", "prepare", "--yes", "--bundle", s.bundle, "--allow-unsigned"), ends: 3},
	}
}

var downLine = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| (goes on|ends; nothing is changed) \\| (goes on|refused|has no such flag) \\|$")

// goesInThroughAnother gives every command of docs/hosts-down.md while the first master has
// no power, and holds it to what that page says.
func (s *walkSite) goesInThroughAnother(t testing.TB) {
	text, err := os.ReadFile("../../docs/hosts-down.md")
	if err != nil {
		t.Fatal(err)
	}
	rows, first := s.downRows(), s.masters[0]
	lines := downLine.FindAllStringSubmatch(string(text), -1)
	if len(lines) != len(rows) {
		t.Fatalf("docs/hosts-down.md has %d commands, %d are tested", len(lines), len(rows))
	}
	s.leavesAnOperation(t, "h6")
	s.losesPower(t, first)
	said(t, s.kubexm(t, rows["kubexm operation show"].args...), 0, "create")
	for _, line := range lines {
		row, ok := rows[line[1]]
		if !ok {
			t.Fatalf("%s is not tested", line[1])
		}
		r := s.kubexm(t, row.args...)
		if offered := strings.Contains(r.stderr, "continue without: --skip-host "+first); offered != (line[3] == "goes on") {
			t.Errorf("%s: offers --skip-host: %v, and with it the page says: %s", line[1], offered, line[3])
		}
		switch {
		case line[2] == "goes on":
			said(t, r, 0)
		case row.ends == 0:
			t.Errorf("%s goes on, says the test", line[1])
		default:
			said(t, r, row.ends, first)
		}
		if line[3] == "refused" {
			said(t, s.kubexm(t, append(row.args, "--skip-host", first)...), 2, first)
		}
	}
	said(t, s.kubexm(t, append(s.creation(), "--skip-host", first)...), 0, "create of cluster site: done", first)
	s.hasPower(t, first)
	said(t, s.kubexm(t, s.creation()...), 0, "create of cluster site: done")
	said(t, s.kubexm(t, "diff", "-f", s.configFile()), 0)
	for _, line := range lines {
		if row := rows[line[1]]; line[3] == "goes on" && row.wipes {
			s.losesPower(t, first)
			said(t, s.kubexm(t, append(row.args, "--skip-host", first)...), 0, first)
			if err := s.restore(t, "create"); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// leavesAnOperation has an install end before its time, at a worker whose kubelet does not start.
func (s *walkSite) leavesAnOperation(t testing.TB, worker string) {
	t.Helper()
	const dropIn = "/etc/systemd/system/kubelet.service.d/99-site.conf"
	s.on(t, worker, "mkdir -p /etc/systemd/system/kubelet.service.d && printf '[Service]\nExecStartPre=/bin/false\n' > "+dropIn+" && systemctl daemon-reload && systemctl stop kubelet")
	r := s.kubexm(t, s.creation()...)
	said(t, r, 1, worker)
	if strings.Contains(r.stdout, "done") {
		t.Error("it is done, it says")
	}
	s.on(t, worker, "rm "+dropIn+" && systemctl daemon-reload && systemctl start kubelet")
}

func (s *labSite) losesPower(t testing.TB, host string) {
	t.Helper()
	h, err := s.Host(host)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Cut(h); err != nil {
		t.Fatal(err)
	}
}

// hasPower boots a master, and returns when its API server answers.
func (s *walkSite) hasPower(t testing.TB, host string) {
	t.Helper()
	h, err := s.Host(host)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Boot(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	s.eventually(t, host, atHome+kubectl+"--request-timeout=10s get nodes")
}
