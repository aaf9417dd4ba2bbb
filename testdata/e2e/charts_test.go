package e2e

import (
	"flag"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/testdata/lab"
	"github.com/mensylisir/kubexm/testdata/lab/components"
	"github.com/mensylisir/kubexm/testdata/lab/images"
)

var updateCharts = flag.Bool("update-charts", false, "rewrite the table of docs/charts.md from what TestCharts saw")

// chartTable is testdata/charts.yaml.
type chartTable struct {
	Charts   []tried          `yaml:"charts"`
	StandIns []images.StandIn `yaml:"standIns"`
}

// tried is one chart that is installed.
type tried struct {
	Addon  manifest.Addon `yaml:"addon"`
	Module string         `yaml:"module"`          // path@version
	Sum    string         `yaml:"sum"`             // of the module, as go.sum has it
	Path   string         `yaml:"path"`            // of the chart's folder
	Named  string         `yaml:"named,omitempty"` // what Chart.yaml is called, where upstream makes it while releasing
	Needs  *needed        `yaml:"needs,omitempty"`
	// Upgrade are other values, to install the chart once more with.
	Upgrade map[string]any `yaml:"upgrade,omitempty"`
	Tested  bool           `yaml:"tested,omitempty"` // by `helm test`
	Runs    string         `yaml:"runs"`             // whose programs its pods run, for the reader
	// Unasked says of each image that no pod is to ask for why.
	Unasked map[string]string `yaml:"unasked,omitempty"`
}

// needed is a chart that another one depends on, and that lies in its folder: it
// is taken out of there, and served by the repository that it is published in.
type needed struct {
	Archive    string `yaml:"archive"` // in the chart's folder
	Repository string `yaml:"repository"`
}

func readChartTable(t *testing.T) chartTable {
	t.Helper()
	f, err := os.Open("testdata/charts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	d := yaml.NewDecoder(f)
	d.KnownFields(true)
	var all chartTable
	if err := d.Decode(&all); err != nil {
		t.Fatal(err)
	}
	return all
}

// newChartSite brings up three hosts, serves the charts and what they run, and
// builds a bundle of a config that names the charts alone, in volumes.
func newChartSite(t *testing.T, table chartTable) *labSite {
	t.Helper()
	l := lab.Start(t, 3)
	l.Inside(netip.MustParsePrefix("10.204.0.0/20")) // of testdata/charts-cluster.yaml
	cache, err := components.DefaultCache()
	if err != nil {
		t.Fatal(err)
	}
	s := &labSite{Lab: l, dir: t.TempDir(), cache: cache}
	text, err := os.ReadFile("testdata/charts-cluster.yaml")
	if err != nil {
		t.Fatal(err)
	}
	s.config = l.Config(string(text))
	s.writeWith(t, "config.yaml", table.Charts)
	s.serveCharts(t, table)
	s.bundle = s.buildVolumes(t)
	return s
}

// writeWith writes the config with the add-ons of charts below it.
func (s *labSite) writeWith(t *testing.T, name string, charts []tried) {
	t.Helper()
	var addons []manifest.Addon
	for _, c := range charts {
		addons = append(addons, c.Addon)
	}
	list, err := yaml.Marshal(map[string]any{"addons": addons})
	if err != nil {
		t.Fatal(err)
	}
	s.write(t, name, s.config+"  "+strings.ReplaceAll(strings.TrimSpace(string(list)), "\n", "\n  ")+"\n")
}

// buildVolumes builds the bundle in volumes, loses one, and has it rebuilt.
func (s *labSite) buildVolumes(t *testing.T) string {
	t.Helper()
	out := filepath.Join(s.dir, "site.tar.zst")
	s.up.must(t, append(s.sources(), "bundle", "build", "--lock", filepath.Join(s.dir, "site.lock"), "--volume-size", "128MiB", "--parity", "1", out)...)
	all, err := filepath.Glob(out + ".[0-9][0-9][0-9]")
	if err != nil || len(all) < 3 {
		t.Fatalf("%d volumes, %v; at least 3 are wanted", len(all), err)
	}
	first := out + ".001"
	if err := os.Remove(all[1]); err != nil {
		t.Fatal(err)
	}
	r := s.kubexm(t, "install", "--bundle", first, "--allow-unsigned", "-f", filepath.Join(s.dir, "config.yaml"))
	said(t, r, 4, "site.tar.zst.002: the volume is missing", "kubexm bundle repair "+first)
	said(t, s.up.run(t, []string{"bundle", "repair", first}), 0, ".002: rebuilt")
	return first
}

// TestCharts installs upstream's charts out of a bundle for which nobody listed an
// image, and holds what kubexm found in them against what was asked for.
func TestCharts(t *testing.T) {
	table := readChartTable(t)
	s := newChartSite(t, table)
	found := s.found(t)
	config := filepath.Join(s.dir, "config.yaml")

	s.installCharts(t, config)
	phases := []phase{{"at the installation", s.asksOfPods(t, table)}}
	s.addonsWork(t)
	said(t, s.install(t, config), 0, "0 steps ran")

	s.upgradeCharts(t, table)
	phases = append(phases, phase{"at an upgrade", s.asksOfPods(t, table)})
	for _, c := range table.Charts {
		if c.Tested {
			s.on(t, s.Hosts[0].Name, "helm --kubeconfig /etc/kubernetes/admin.conf -n "+c.Addon.In()+" test "+c.Addon.Name+" --timeout 3m")
		}
	}
	phases = append(phases, phase{"by `helm test`", s.asksOfPods(t, table)})

	rows, wrong := compare(table, found, phases, s.held(t))
	for _, w := range wrong {
		t.Error(w)
	}
	for _, line := range summary(rows) {
		t.Log(line)
	}
	documented(t, table, rows)
	said(t, s.kubexm(t, "delete", "cluster", "-f", config, "--yes"), 0, "delete of cluster site: done") // with the hooks of a removal
}

// installCharts installs, and shows what holds it up.
func (s *labSite) installCharts(t *testing.T, config string) result {
	t.Helper()
	r := s.install(t, config)
	if r.code != 0 {
		t.Logf("pods:\n%s", s.kubectl(t, "get", "pods", "-A", "-o", "wide"))
		t.Logf("events:\n%s", s.kubectl(t, "get", "events", "-A", "--field-selector", "type!=Normal"))
	}
	said(t, r, 0, "create of cluster site: done")
	return r
}

// installed are the add-ons that a run did something about.
var installed = regexp.MustCompile(` ran +h1 .*/addon\.install-(\S+)`)

// upgradeCharts installs some charts anew with other values, out of a bundle of
// that config.
func (s *labSite) upgradeCharts(t *testing.T, table chartTable) {
	t.Helper()
	charts := slices.Clone(table.Charts)
	var want, got []string
	for i := range charts {
		if charts[i].Upgrade != nil {
			charts[i].Addon.Values = charts[i].Upgrade
			want = append(want, charts[i].Addon.Name)
		}
	}
	s.writeWith(t, "upgrade.yaml", charts)
	s.bundle = s.build(t, "upgrade.yaml")
	r := s.installCharts(t, filepath.Join(s.dir, "upgrade.yaml"))
	for _, m := range installed.FindAllStringSubmatch(r.stdout+r.stderr, -1) {
		got = append(got, m[1])
	}
	if !slices.Equal(got, want) {
		t.Errorf("the add-ons %q were installed anew, want %q", got, want)
	}
}

// addonsWork asks those of the charts' programs that run for real.
func (s *labSite) addonsWork(t *testing.T) {
	t.Helper()
	for what, args := range map[string][]string{
		"metrics-server":         {"top", "nodes", "--no-headers"},
		"node-feature-discovery": {"get", "nodes", "-l", "feature.node.kubernetes.io/kernel-version.major", "--no-headers"},
		"metallb":                {"-n", "metallb", "get", "pods", "-l", "app.kubernetes.io/component=speaker", "-o", "wide", "--no-headers"},
	} {
		deadline := time.Now().Add(time.Minute) // a node that joined late has no figures yet
		for {
			out := s.kubectl(t, args...)
			if !slices.ContainsFunc(s.Hosts, func(h lab.Host) bool { return !strings.Contains(out, h.Name) }) {
				t.Logf("%s:\n%s", what, out)
				break
			}
			if time.Now().After(deadline) {
				t.Errorf("%s does not tell of every host:\n%s", what, out)
				break
			}
			time.Sleep(2 * time.Second)
		}
	}
}

// TestImagesAreCompared: what TestCharts is to find is found.
func TestImagesAreCompared(t *testing.T) {
	table := chartTable{Charts: []tried{{Addon: manifest.Addon{Name: "web"}, Unasked: map[string]string{"tool:1": "a hook of a removal runs it"}}}}
	found := map[string]map[string][]string{"web": {"web:1": {"Deployment"}, "tool:1": {"Job"}}}
	for name, c := range map[string]struct {
		asked, held []string
		want        string
	}{
		"as it should be":    {[]string{"web:1"}, []string{"web:1", "pause:3"}, ""},
		"not found":          {[]string{"web:1", "late:1"}, []string{"late:1", "web:1"}, "web: a pod asked for late:1, which was not found in the chart"},
		"never asked for":    {[]string{"tool:1"}, []string{"tool:1"}, "web: a pod asked for tool:1, and testdata/charts.yaml says why none does: a hook of a removal runs it\nweb: no pod asked for web:1, and testdata/charts.yaml does not say why"},
		"pulled by somebody": {[]string{"web:1"}, []string{"tool:1", "web:1"}, "web: no pod asked for tool:1, and a host holds it"},
		"not pulled":         {[]string{"web:1"}, nil, "web: a pod asked for web:1, and no host holds it"},
		"nothing ran":        {nil, nil, "web: no pod asked for anything\nweb: no pod asked for web:1, and testdata/charts.yaml does not say why"},
	} {
		t.Run(name, func(t *testing.T) {
			_, wrong := compare(table, found, []phase{{"before", nil}, {"now", map[string][]string{"web": c.asked}}}, c.held)
			if got := strings.Join(wrong, "\n"); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}
