package installer_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mensylisir/kubexm/installer"
	"github.com/mensylisir/kubexm/installer/pipeline"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/cluster"
	"github.com/mensylisir/kubexm/steps/kubectl"
)

// asks asks the cluster as commands do that change nothing.
func asks(what func(*steps.Host) error) func(*site) error {
	return func(s *site) error {
		of := s.Reached("m2", "m3")
		m, err := installer.NewWayIn(s.Cluster.HostsWith(manifest.RoleMaster), of).Lead(s.t.Context())
		if err != nil {
			return err
		}
		return what(of(m))
	}
}

func runs(p pipe) func(*site) error { return func(s *site) error { return s.Run(p, nil) } }

// awayRows are the commands of the table, with what each does on a simulated site.
var awayRows = []struct {
	command string
	run     func(*site) error
	skips   bool // it has --skip-host
}{
	{"kubexm get nodes", func(s *site) error {
		return asks(func(h *steps.Host) error {
			_, err := kubectl.Run(s.t.Context(), h, "get", "nodes")
			return err
		})(s)
	}, false},
	{"kubexm get cluster", func(s *site) error {
		return asks(func(h *steps.Host) error {
			_, err := kubectl.Run(s.t.Context(), h, "-n", "kube-system", "get", "configmap/kubexm", "-o", "yaml")
			return err
		})(s)
	}, false},
	{"kubexm kubeconfig", func(s *site) error {
		return asks(func(h *steps.Host) error {
			text, err := cluster.Kubeconfig(s.t.Context(), s.Cluster, h)
			if !strings.Contains(string(text), h.Address) {
				return fmt.Errorf("%w: the kubeconfig leads elsewhere than to %s", err, h.Name)
			}
			return err
		})(s)
	}, false},
	{"kubexm install", runs(pipeline.Create), true},
	{"kubexm delete cluster", runs(pipeline.Delete), true},
	{"kubexm delete cluster --preserve-data", func(s *site) (err error) {
		s.preserving(func() { err = s.Run(pipeline.Delete, nil) })
		return err
	}, true},
	{"kubexm reset", runs(pipeline.Reset), true},
	{"kubexm preflight", runs(pipeline.Preflight), false},
	{"kubexm hosts prepare", runs(pipeline.Prepare), false},
}

// TestWhatGoesOnWithoutTheFirstMaster: docs/hosts-down.md says what simulated sites show;
// -update writes it.
func TestWhatGoesOnWithoutTheFirstMaster(t *testing.T) {
	const path = "../docs/hosts-down.md"
	says := map[bool]string{true: "goes on", false: "ends; nothing is changed"}
	var table strings.Builder
	for _, row := range awayRows {
		synctest.Test(t, func(t *testing.T) {
			s := newSite(t, "masters-stacked")
			s.Must(pipeline.Create, "create")
			s.PowerOff("m1")
			before := s.State(true)
			err := row.run(s)
			if err != nil {
				s.Same(row.command+": ended, and nothing changed", before, s.State(true))
			}
			with := "has no such flag"
			if row.skips {
				s.Skip = []string{"m1"}
				with = map[bool]string{true: "goes on", false: "refused"}[row.run(s) == nil]
			}
			fmt.Fprintf(&table, "| `%s` | %s | %s |\n", row.command, says[err == nil], with)
		})
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const head = "|---|---|---|\n"
	before, rest, ok := strings.Cut(string(text), head)
	i := strings.Index(rest, "\n\n")
	if !ok || i < 0 {
		t.Fatalf("%s has no table", path)
	}
	want := before + head + strings.TrimSuffix(table.String(), "\n") + rest[i:]
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(text) != want {
		t.Errorf("%s does not say what happens: go test ./installer -run WithoutTheFirstMaster -update writes it. The table:\n%s", path, table.String())
	}
}
