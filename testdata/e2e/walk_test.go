package e2e

import (
	"cmp"
	"context"
	"encoding/gob"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mensylisir/kubexm/testdata/lab"
	"github.com/mensylisir/kubexm/testdata/lab/components"
	"github.com/mensylisir/kubexm/testdata/lab/inventory"
	"github.com/mensylisir/kubexm/testdata/lab/mirror"
)

// The walk's lab, and what its cluster's config says that its tests ask for.
const (
	walkLab      = "walk"
	walkHosts    = 6
	walkConfig   = "testdata/walk.yaml"
	walkServices = "10.202.0.0/20"
)

// Where make has put what the walk runs, and where the walk leaves its table.
const (
	buildFolder = "../../build"
	raceBuilt   = "kubexm-race"
)

// site of the walk, and its legs.
type walkSite struct {
	*labSite
	walker
	reports string // folder of race reports
}

// legsOf lists them all, in their order. Each says from which checkpoint it can be run
// alone: "up" has a bundle and hosts that nobody has changed, "create" the cluster.
func legsOf(s *walkSite) []leg {
	const up, create = "up", "create"
	return []leg{
		{name: up, budget: 45 * time.Second, changes: true, needed: true, run: s.goesUp},
		{name: "preflight", budget: 15 * time.Second, from: up, run: func(t testing.TB) { s.passesPreflight(t) }},
		{name: "refused", budget: 20 * time.Second, from: up, run: func(t testing.TB) { s.refused(t) }},
		{name: "two-at-once", budget: 10 * time.Second, from: up, changes: true, run: func(t testing.TB) { s.twoAtOnce(t, s.creation()...) }},
		{name: create, budget: 150 * time.Second, from: up, changes: true, needed: true, run: s.isCreated},
		{name: "again", budget: 30 * time.Second, from: create, run: s.isAsItWas},
		{name: "fields", budget: 15 * time.Second, from: create, run: func(t testing.TB) {
			s.fieldsTookEffect(t)
			s.mastersServeThemselves(t, "api.site.example")
			said(t, s.kubexm(t, "get", "endpoint", "-f", s.configFile(), "-o", "json"), 0, `"workers"`, `"host": "h5"`, `"host": "h6"`, `"state": "running"`, `"state": "ready"`)
			s.storeIsTuned(t)
		}},
		{name: "hardening", budget: 30 * time.Second, from: create, run: s.isHardened},
		{name: "registry", budget: 30 * time.Second, from: create, run: func(t testing.TB) { s.registryIsGuarded(t, s.configFile()) }},
		{name: "restart", budget: 4 * time.Minute, from: create, apart: true, run: s.isRestarted},
		{name: "drivers", budget: 5 * time.Minute, from: create, apart: true, run: s.isDriven},
		{name: "lead-down", budget: 8 * time.Minute, from: create, apart: true, run: s.goesInThroughAnother},
		{name: "worker", budget: 2 * time.Minute, from: create, changes: true, run: s.aWorkerLeavesAndReturns},
		{name: "lost-member", budget: 15 * time.Second, from: create, changes: true, run: func(t testing.TB) { s.storeDoesWithoutOne(t) }},
		{name: "lost-disk", budget: 30 * time.Second, from: create, changes: true, run: func(t testing.TB) { s.aLostDiskIsReplaced(t, s.configFile()) }},
		{name: "lost-master", budget: 30 * time.Second, from: create, changes: true, run: func(t testing.TB) { s.mastersDoWithoutOne(t, " etcd") }},
		{name: "delta", budget: 60 * time.Second, from: create, changes: true, run: func(t testing.TB) { s.growsByDelta(t) }},
		{name: "delete", budget: 25 * time.Second, from: create, always: true, run: s.isDeleted},
		{name: "checkpoints", budget: 6 * time.Minute, from: create, apart: true, run: s.comesBackEachTime},
	}
}

// TestWalk takes one cluster through its life on real hosts: three masters, two workers
// and a registry, made as the README says, by a kubexm that reports data races from
// there on. KUBEXM_LEG names one leg to run alone, from a checkpoint that was kept, or
// is made and kept where there is none. KUBEXM_KEEP=1 has a walk keep its checkpoints.
func TestWalk(t *testing.T) {
	if err := lab.Possible(); err != nil {
		t.Skip(err)
	}
	if testing.Short() {
		t.Skip("a walk takes longer than a short run has")
	}
	lab.Share(t) // quickstart.sh brings the lab up
	s := newWalk(t)
	if name := os.Getenv("KUBEXM_LEG"); name != "" {
		s.alone(t, name)
		return
	}
	s.all(func(name string, body func(testing.TB)) { t.Run(name, func(t *testing.T) { body(t) }) })
	if err := s.report(filepath.Join(buildFolder, "walk.json")); err != nil {
		t.Error(err)
	}
	if os.Getenv("KUBEXM_KEEP") != "" {
		s.keep(t, s.legs)
	}
	t.Logf("the walk:\n%s", s.text())
}

// newWalk makes a walk that has nothing yet.
func newWalk(t *testing.T) *walkSite {
	t.Helper()
	cache, err := components.DefaultCache()
	if err != nil {
		t.Fatal(err)
	}
	program, err := filepath.Abs(filepath.Join(buildFolder, raceBuilt))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(program); err != nil {
		t.Fatalf("make walk builds what the walk runs: %v", err)
	}
	blobs, err := filepath.Abs(filepath.Join(buildFolder, "cache"))
	if err != nil {
		t.Fatal(err)
	}
	late, err := after(os.Getenv("STAGE_DEADLINE"))
	if err != nil {
		t.Fatal(err)
	}
	s := &walkSite{labSite: &labSite{cache: cache, blobs: blobs, program: program, masters: []string{"h2", "h3", "h4"}, lasting: t}, reports: t.TempDir()}
	// What a race is reported in, by whichever program of kubexm. The first one ends it.
	t.Setenv("GORACE", "halt_on_error=1 exitcode=66 atexit_sleep_ms=100 log_path="+filepath.Join(s.reports, "race"))
	s.legs = legsOf(s)
	s.races, s.late = s.newReports, late
	s.checkpoint = func(t testing.TB, name string) error { return s.Checkpoint(t.Context(), name, s.dir) }
	s.restore = func(t testing.TB, name string) error {
		if err := s.Restore(t.Context(), name); err != nil {
			return err
		}
		s.folder, s.bundle = "", filepath.Join(s.dir, "lab.tar.zst") // where a leg ended in its midst
		s.comesBack(t, name)
		return nil
	}
	t.Cleanup(func() { s.end(t) })
	return s
}

// newReports gives what races were reported since it was last asked.
func (s *walkSite) newReports() string {
	var all strings.Builder
	files, _ := filepath.Glob(filepath.Join(s.reports, "race.*")) // the pattern is right
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			text = []byte(err.Error())
		}
		all.Write(text)
		_ = os.Remove(file)
	}
	return all.String()
}

// end takes the lab down, and holds it against what tried to leave it.
func (s *walkSite) end(t *testing.T) {
	if s.Lab == nil {
		return
	}
	attempts, err := s.Egress(context.Background()) // the test's own context has ended
	if err != nil {
		t.Error(err)
	}
	for _, a := range lab.Left(attempts) {
		t.Errorf("something tried to leave the lab: %s", a)
	}
	if err := s.Down(); err != nil {
		t.Error(err)
	}
}

// keep has checkpoints of legs outlive the lab, with all that they hold.
func (s *walkSite) keep(t testing.TB, legs []leg) {
	t.Helper()
	for _, l := range legs {
		if !l.changes || !slices.ContainsFunc(s.legs, func(of leg) bool { return of.from == l.name }) {
			continue
		}
		if err := s.Keep(t.Context(), l.name); err != nil {
			t.Errorf("keep checkpoint %s: %v", l.name, err)
		}
	}
}

// alone runs one leg from the checkpoint that it begins at, once.
func (s *walkSite) alone(t *testing.T, name string) {
	t.Helper()
	at := slices.IndexFunc(s.legs, func(l leg) bool { return l.name == name })
	if at < 0 {
		var names []string
		for _, l := range s.legs {
			names = append(names, l.name)
		}
		t.Fatalf("KUBEXM_LEG=%s is none of %s", name, strings.Join(names, ", "))
	}
	l := s.legs[at]
	if l.from != "" {
		t.Run("from-"+l.from, func(t *testing.T) { s.begins(t, l.from) })
		if t.Failed() {
			return
		}
	}
	s.legs = []leg{l}
	s.legs[0].changes = false
	t.Run(name, func(t *testing.T) {
		began := time.Now()
		if outcome := s.judged(t, attempt(t, l.run)); outcome != passed {
			t.Errorf("the leg %s %s", name, outcome)
		}
		t.Logf("the leg alone took %s", time.Since(began).Round(100*time.Millisecond))
	})
}

// begins brings the lab up from a kept checkpoint, or walks there and keeps it.
func (s *walkSite) begins(t *testing.T, from string) {
	t.Helper()
	if l, err := lab.Open(s.cache, walkLab); err == nil { // of one that was killed
		if err := l.Down(); err != nil {
			t.Fatal(err)
		}
	}
	saved, err := lab.Checkpoints(t.Context(), s.cache)
	if err != nil {
		t.Fatal(err)
	}
	if slices.ContainsFunc(saved, func(c *lab.Saved) bool { return c.Kept && c.Lab.Name == walkLab && c.Name == from }) {
		l, err := lab.Resume(t.Context(), lab.Options{Name: walkLab, Cache: s.cache}, from)
		if err != nil {
			t.Fatal(err)
		}
		s.moveIn(t, l)
		s.serve(t)
		s.comesBack(t, from)
		return
	}
	all := s.legs
	s.legs = slices.DeleteFunc(slices.Clone(all[:1+slices.IndexFunc(all, func(l leg) bool { return l.name == from })]), func(l leg) bool { return !l.needed })
	s.all(func(name string, body func(testing.TB)) { t.Run(name, func(t *testing.T) { body(t) }) })
	made := s.legs
	s.legs = all
	if !t.Failed() {
		s.keep(t, made)
	}
}

// moveIn has the site be of a lab that is up.
func (s *walkSite) moveIn(t testing.TB, l *lab.Lab) {
	t.Helper()
	l.Inside(netip.MustParsePrefix(walkServices))
	dir, err := l.Folder("site")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(walkConfig)
	if err != nil {
		t.Fatal(err)
	}
	s.Lab, s.dir, s.config = l, dir, l.Config(string(text))
	s.bundle = filepath.Join(dir, "lab.tar.zst")
	s.served = s.grown(t)
}

func (s *walkSite) configFile() string { return filepath.Join(s.dir, "config.yaml") }

// creation is what a person types to make the cluster.
func (s *walkSite) creation() []string {
	return []string{"install", "--bundle", s.bundle, "--allow-unsigned", "-f", s.configFile()}
}

// quickstart runs a part of the README's quickstart, by the kubexm that people get.
func (s *walkSite) quickstart(t testing.TB, site string, part ...string) result {
	t.Helper()
	began := time.Now()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "bash", append([]string{"testdata/quickstart.sh"}, part...)...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "LAB="+walkLab, "N=6", "CONFIG=testdata/e2e/"+walkConfig, "SITE="+site, "NAME=site", "SERVICES="+walkServices, "SITE_PASSWORD="+lab.Password)
	var all strings.Builder
	cmd.Stdout, cmd.Stderr = &all, &all
	err = cmd.Run()
	r := result{code: cmd.ProcessState.ExitCode(), stdout: all.String(), took: time.Since(began)}
	t.Logf("quickstart.sh %s: exit %d in %s\n%s", strings.Join(part, " "), r.code, r.took.Round(100*time.Millisecond), r.stdout)
	if err != nil {
		t.Fatalf("quickstart.sh %s: %v", strings.Join(part, " "), err)
	}
	return r
}

// goesUp brings up the hosts and builds the bundle, as the README's quickstart does.
func (s *walkSite) goesUp(t testing.TB) {
	site, err := filepath.Abs(filepath.Join(buildFolder, walkLab))
	if err != nil {
		t.Fatal(err)
	}
	s.quickstart(t, site, "build")
	s.quickstart(t, site, "up")
	l, err := lab.Open(s.cache, walkLab)
	if err != nil {
		t.Fatal(err)
	}
	s.moveIn(t, l)
	s.write(t, "config.yaml", string(mustRead(t, filepath.Join(site, "config.yaml"))))
	if err := os.CopyFS(filepath.Join(s.dir, "greeter"), os.DirFS("testdata/greeter")); err != nil { // an add-on's chart, beside the config
		t.Fatal(err)
	}
	lines, err := mirror.Open(s.cache).Sources()
	if err != nil {
		t.Fatal(err)
	}
	s.write(t, "lab.list", strings.Join(lines, "\n")+"\n")
	s.serve(t)
	s.quickstart(t, s.dir, "bundle", s.configFile(), s.dir, s.bundle)
	s.remember(t, s.inventories(t))
}

// remember writes down what the hosts were before anything was done to them.
func (s *walkSite) remember(t testing.TB, before map[string]inventory.Inventory) {
	t.Helper()
	f, err := os.Create(filepath.Join(s.dir, "before"))
	if err != nil {
		t.Fatal(err)
	}
	if err := cmp.Or(gob.NewEncoder(f).Encode(before), f.Close()); err != nil {
		t.Fatal(err)
	}
}

func (s *walkSite) before(t testing.TB) (before map[string]inventory.Inventory) {
	t.Helper()
	f, err := os.Open(filepath.Join(s.dir, "before"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := gob.NewDecoder(f).Decode(&before); err != nil {
		t.Fatal(err)
	}
	return before
}
