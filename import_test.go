// Package kubexm_test holds the house rules that the compiler does not: which
// folder may import which, how long a file may be, and that each package says
// what it is. It reads the tree itself, every build tag and testdata included,
// so that nothing is hidden from it that `go list` would pass over.
package kubexm_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/mod/modfile"
)

// line is the direction of imports: a folder imports only what stands to its
// right. Sub-folders belong to their top folder.
var line = []string{"cmd", "installer", "steps", "registry", "bundle", "packaging", "versions", "manifest"}

// domain is what the steps of one domain (containerd, kubeadm, …) are made of. A
// domain that needs another one names it below.
var domain = []string{"steps", "steps/op", "steps/pki", "steps/runner"}

// kubexm is this repository. A new folder is added here on purpose, or not at all.
var kubexm = house{
	folders: map[string][]string{
		"cmd/docgen":                    nil,
		"cmd/kubexm":                    {"cmd/kubexm/console"},
		"cmd/kubexm/console":            nil,
		"cmd/versionsgen":               nil,
		"installer":                     {"installer/audit", "installer/engine", "installer/pipeline", "installer/plan", "installer/state"},
		"installer/audit":               nil,
		"installer/engine":              {"installer/plan"},
		"installer/module":              {"installer/plan", "installer/task"},
		"installer/pipeline":            {"installer/module", "installer/plan"},
		"installer/plan":                nil,
		"installer/report":              {"installer", "installer/engine", "installer/plan"},
		"installer/site":                {"installer", "installer/engine", "installer/pipeline", "installer/plan", "installer/report", "installer/state"},
		"installer/sitetest":            {"installer", "installer/audit", "installer/engine", "installer/pipeline", "installer/plan", "installer/state"},
		"installer/state":               nil,
		"installer/task":                {"installer/plan"},
		"steps":                         {"steps/connector", "steps/runner"},
		"steps/addon":                   append([]string{"steps/controlplane", "steps/kubectl"}, domain...), // it applies manifests to a cluster that runs
		"steps/connector":               nil,
		"steps/connector/conntest":      {"steps/connector"},
		"steps/connector/local":         {"steps/connector"},
		"steps/connector/ssh":           {"steps/connector"},
		"steps/connector/sshtest":       nil,
		"steps/etcd":                    append([]string{"steps/connector"}, domain...),                                   // it reaches a store through the wire
		"steps/controlplane":            append([]string{"steps/kubectl"}, domain...),                                     // whether a control plane runs is asked through kubectl
		"steps/kubeadm":                 append([]string{"steps/controlplane", "steps/etcd", "steps/kubectl"}, domain...), // its API servers are told where the store is
		"steps/gate":                    append([]string{"steps/etcd", "steps/controlplane", "steps/kubectl"}, domain...), // it asks all that a cluster is made of
		"steps/kubectl":                 {"steps", "steps/op", "steps/runner"},
		"steps/cluster":                 append([]string{"steps/controlplane", "steps/kubectl"}, domain...),              // it speaks to what runs, as its admin
		"steps/loadbalancer":            append([]string{"steps/controlplane", "steps/kubectl", "steps/pki"}, domain...), // the cluster's CA signs what it checks servers with, and kube-vip starts with the control plane
		"steps/dns":                     append([]string{"steps/kubectl"}, domain...),                                    // it applies a manifest
		"steps/network":                 append([]string{"steps/addon", "steps/kubectl"}, domain...),                     // it applies a manifest, or installs a chart as add-ons are
		"steps/node":                    append([]string{"steps/controlplane", "steps/packages"}, domain...),             // a name means something else on a master that has joined
		"steps/packages":                {"steps", "steps/op", "steps/runner"},
		"steps/preflight":               append([]string{"steps/packages", "steps/loadbalancer"}, domain...), // they say which hosts cannot be given any, and which can hold a virtual IP
		"steps/registryd":               append([]string{"steps/connector"}, domain...),                      // it reaches the registry through the wire
		"steps/registryd/registrydtest": {"steps/connector", "steps/connector/conntest", "steps/registryd"},
		"steps/op":                      {"steps", "steps/runner"},
		"steps/pki":                     nil,
		"steps/runner":                  {"steps/connector"},
		"steps/runner/runnertest":       {"steps/connector", "steps/connector/conntest", "steps/runner"},
		"steps/runtime":                 append([]string{"steps/runtime/*"}, domain...),   // it chooses one
		"steps/runtime/containerd":      append([]string{"steps/runtime/cri"}, domain...), // what every runtime has beside it
		"steps/runtime/cri":             domain,
		"steps/steptest":                {"steps", "steps/op", "steps/connector", "steps/connector/conntest", "steps/runner"},
		"registry":                      nil,
		"registry/registrytest":         nil,
		"registry/serve":                {"registry"},
		"bundle":                        {"bundle/archive", "bundle/chart", "bundle/delta", "bundle/discover", "bundle/fetch", "bundle/sbom"},
		"bundle/archive":                nil,
		"bundle/chart":                  nil,
		"bundle/delta":                  {"bundle/archive"},
		"bundle/discover":               nil,
		"bundle/fetch":                  {"bundle/chart"},
		"bundle/bundletest":             {"bundle/fetch"},
		"bundle/sbom":                   nil,
		"bundle/transfer":               {"bundle", "bundle/archive", "bundle/fetch"},
		"bundle/sign":                   {"bundle", "bundle/archive"},
		"packaging":                     nil,
		"packaging/apt":                 {"packaging"},
		"packaging/rpm":                 {"packaging"},
		"packaging/apt/apttest":         nil,
		"packaging/rpm/rpmtest":         nil,
		"packaging/system":              {"packaging", "packaging/apt", "packaging/rpm"},
		"versions":                      nil,
		"manifest/durable":              nil,
		"manifest":                      {"manifest/document"},
		"manifest/document":             nil,
		"manifest/part":                 {"manifest"},
		"manifest/refusal":              nil,
		"manifest/schema":               {"manifest"},
		"manifest/starter":              {"manifest/refusal"},

		"testdata/bench":               nil,
		"testdata/built":               nil,
		"testdata/e2e":                 nil,
		"testdata/fair":                nil,
		"testdata/faults":              nil,
		"testdata/faults/brittle":      nil,
		"testdata/hostile":             nil,
		"testdata/lab":                 nil,
		"testdata/lab/cmd":             nil,
		"testdata/lab/drivers":         nil,
		"testdata/lab/components":      nil,
		"testdata/lab/images":          nil,
		"testdata/lab/images/kube-vip": nil,
		"testdata/lab/images/labtool":  nil,
		"testdata/lab/images/volumes":  nil,
		"testdata/lab/images/pause":    nil,
		"testdata/lab/images/standin":  nil,
		"testdata/lab/inventory":       nil,
		"testdata/lab/mirror":          nil,
		"testdata/lab/repack":          nil,
		"testdata/budget":              nil,
		"testdata/scenarios":           nil,
		"testdata/stage":               nil,
		"testdata/testall":             nil,
		"testdata/upstream":            nil,
		"testdata/upstream/cmd":        nil,
		"testdata/vulns":               nil,
		"testdata/vulns/gen":           nil,
	},
	// Plans are made and walked without knowing what a step does; what acts on a
	// host knows of no bundle; the archive's bytes mean nothing to who writes them.
	narrow: map[string][]string{
		"installer/audit":    {"steps", "steps/connector", "manifest/durable", "manifest/refusal"},
		"installer/engine":   {"steps", "manifest"},
		"installer/module":   nil,
		"installer/pipeline": {"manifest", "manifest/part"},
		"installer/plan":     {"steps", "manifest", "manifest/part"},
		// What is remembered is read, and held against a config; nothing here changes a host.
		"installer/state": {"steps", "steps/cluster", "steps/controlplane", "steps/kubeadm", "manifest", "manifest/part", "manifest/durable"},
		// A task says which steps, where, in what order. It cannot reach anything to
		// write a step of its own with.
		"installer/task": {"steps", "steps/addon", "steps/cluster", "steps/controlplane", "steps/dns", "steps/etcd", "steps/gate", "steps/kubeadm", "steps/loadbalancer", "steps/network",
			"steps/node", "steps/preflight", "steps/registryd", "steps/runtime", "steps/runtime/cri", "manifest", "manifest/part"},
		"steps/connector":          {"manifest"},
		"steps/connector/conntest": nil,
		"steps/connector/local":    {"manifest"},
		"steps/connector/ssh":      {"manifest", "manifest/durable"},
		"steps/connector/sshtest":  nil,
		"steps/op":                 {"manifest"},
		"steps/packages":           {"manifest"},
		"steps/pki":                {"manifest", "manifest/durable"},
		"steps/runner":             {"manifest"},
		"steps/runner/runnertest":  nil,
		"bundle/archive":           {"manifest/durable"},
		"bundle/bundletest":        {"manifest"},
		"bundle/chart":             nil,
		"bundle/delta":             {"manifest"},
		"bundle/discover":          nil,
		"bundle/fetch":             {"packaging", "packaging/system", "manifest", "manifest/durable"},
		"bundle/sbom":              {"manifest"},
		"bundle/transfer":          {"manifest"},
		"bundle/sign":              {"manifest", "manifest/durable", "manifest/refusal"},
		// What only reads and reckons writes no file.
		"packaging/apt":     {"manifest", "versions"},
		"packaging/rpm":     {"manifest", "versions"},
		"versions":          {"manifest", "manifest/part"},
		"manifest":          nil,
		"manifest/document": nil,
		"manifest/part":     nil,
		"manifest/schema":   nil,
	},
	plain:   []string{"docs"},
	skipped: []string{"build", "testdata/concurrent", "testdata/imports-bad"},
	lines:   400,
}

// house is the shape of a source tree.
type house struct {
	// folders holds every folder with Go in it, and for each what it may import
	// of its own top folder; "x/*" are all that lie in x. What it may import of others
	// follows from line.
	folders map[string][]string
	narrow  map[string][]string // all that a folder may import of other top folders, where the line allows more
	plain   []string            // top folders that hold no Go
	skipped []string            // folders that are not looked into
	lines   int                 // the most that a file may have; tests and generated code are free
}

func TestHouse(t *testing.T) {
	for _, f := range kubexm.findings(t, os.DirFS(".")) {
		t.Error(f)
	}
}

// TestHouseFindsFaults runs the same rules over a tree that breaks each of them.
func TestHouseFindsFaults(t *testing.T) {
	bad := house{
		folders: map[string][]string{
			"cmd/kubexm":        nil,
			"steps":             nil,
			"bundle":            {"bundle/fetch"},
			"bundle/fetch":      nil,
			"bundle/fetchtest":  {"bundle/fetch"},
			"packaging":         nil,
			"versions":          nil,
			"manifest":          nil,
			"testdata/upstream": nil,
		},
		narrow: map[string][]string{"bundle/fetch": {"manifest"}},
		lines:  30,
	}
	want := []string{
		`bundle/bundle.go:6: bundle imports bundle/fetchtest: only tests do`,
		`bundle/bundle.go:7: bundle imports cmd/kubexm: nobody imports a command`,
		`bundle/bundle.go:8: bundle imports elsewhere: no such folder is listed in import_test.go`,
		`bundle/fetch/fetch.go:5: bundle/fetch imports bundle: not among what import_test.go lets it import of its own folder: nothing`,
		`bundle/fetch/fetch.go:7: bundle/fetch imports versions: not among what import_test.go lets it import of other folders: manifest`,
		`bundle/helpers: holds Go and is not listed in import_test.go`,
		`cmd/kubexm/main.go:7: cmd/kubexm imports testdata/upstream: only tests and testdata do`,
		`manifest/manifest.go:4: manifest imports versions: versions stands to its left`,
		`packaging/long.go: 31 lines, the limit is 30: give one of its ideas a file of its own`,
		`steps: listed in import_test.go and holds no Go`,
		`testdata/upstream/upstream.go:6: testdata/upstream imports cmd/kubexm: nobody imports a command`,
		`util: not a top folder that import_test.go lists`,
		`versions/versions_test.go:4: versions imports bundle: bundle stands to its left`,
		`versions: no package comment says what it owns`,
	}
	if diff := cmp.Diff(want, bad.findings(t, os.DirFS("testdata/imports-bad"))); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
}

// TestKubeadmIsOneWayOfTwo: what steps need of a control plane, whoever runs it, is
// steps/controlplane's. None of them may come to need kubeadm.
func TestKubeadmIsOneWayOfTwo(t *testing.T) {
	for folder, may := range kubexm.folders {
		if topOf(folder) == "steps" && slices.Contains(may, "steps/kubeadm") {
			t.Errorf("%s may import steps/kubeadm", folder)
		}
	}
}

// TestMakefileNamesTestdata: ./... leaves out every folder named testdata, so
// the test commands must name what Go is there.
func TestMakefileNamesTestdata(t *testing.T) {
	makefile, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^TESTDATA := (.*)$`).FindSubmatch(makefile)
	if m == nil {
		t.Fatal("the Makefile sets no TESTDATA")
	}
	named := func(folder string) bool {
		return slices.ContainsFunc(strings.Fields(string(m[1])), func(pattern string) bool {
			base, tree := strings.CutSuffix(strings.TrimPrefix(pattern, "./"), "/...")
			return folder == base || tree && strings.HasPrefix(folder, base+"/")
		})
	}
	for folder := range kubexm.folders {
		if topOf(folder) == "testdata" && !named(folder) {
			t.Errorf("the Makefile's TESTDATA does not name %s: its tests never run", folder)
		}
	}
}

// TestMakefileNamesModules: ./... leaves out other modules too.
func TestMakefileNamesModules(t *testing.T) {
	var own []string
	for folder := range kubexm.folders {
		if _, err := os.Stat(path.Join(folder, "go.mod")); err == nil {
			own = append(own, folder)
		}
	}
	slices.Sort(own)
	if diff := cmp.Diff(own, words(t, "MODULES")); diff != "" {
		t.Errorf("modules with Go of ours, and the Makefile's MODULES (-is +named):\n%s", diff)
	}
}

// findings lists every break of the rules in tree, sorted.
func (h house) findings(t *testing.T, tree fs.FS) []string {
	t.Helper()
	gomod, err := fs.ReadFile(tree, "go.mod")
	if err != nil {
		t.Fatal(err)
	}
	c := check{house: h, tree: tree, module: modfile.ModulePath(gomod), seen: map[string]bool{}, commented: map[string]bool{}}
	if err := fs.WalkDir(tree, ".", c.visit); err != nil {
		t.Fatal(err)
	}
	for folder := range h.folders {
		if !c.seen[folder] {
			c.found = append(c.found, folder+": listed in import_test.go and holds no Go")
		}
	}
	for folder, ok := range c.commented {
		if !ok {
			c.found = append(c.found, folder+": no package comment says what it owns")
		}
	}
	slices.Sort(c.found)
	return slices.Compact(c.found)
}

// check is one walk over a tree.
type check struct {
	house
	tree      fs.FS
	module    string
	seen      map[string]bool // folders with Go
	commented map[string]bool // folders with a package, and whether a comment heads it
	found     []string
}

func (c *check) visit(name string, d fs.DirEntry, err error) error {
	switch {
	case err != nil:
		return err
	case name == ".":
		return nil
	case strings.HasPrefix(d.Name(), "."), slices.Contains(c.skipped, name):
		if d.IsDir() {
			return fs.SkipDir
		}
		return nil
	case d.IsDir():
		if known := append([]string{"testdata"}, c.plain...); !strings.Contains(name, "/") &&
			!slices.Contains(line, name) && !slices.Contains(known, name) {
			c.found = append(c.found, name+": not a top folder that import_test.go lists")
			return fs.SkipDir
		}
		return nil
	case path.Ext(name) != ".go", path.Dir(name) == "." && strings.HasSuffix(name, "_test.go"):
		return nil // these tests are the only Go at the root
	}
	return c.file(name)
}

// file applies the rules to one Go file.
func (c *check) file(name string) error {
	folder := path.Dir(name)
	c.seen[folder] = true
	if _, ok := c.folders[folder]; !ok {
		c.found = append(c.found, folder+": holds Go and is not listed in import_test.go")
		return nil
	}
	source, err := fs.ReadFile(c.tree, name)
	if err != nil {
		return err
	}
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, name, source, parser.ImportsOnly|parser.ParseComments)
	if err != nil {
		return err
	}
	test := strings.HasSuffix(name, "_test.go")
	if !test {
		c.commented[folder] = c.commented[folder] || parsed.Doc != nil
		if n := bytes.Count(source, []byte("\n")); n > c.lines && !ast.IsGenerated(parsed) && !isTestHelp(folder) {
			c.found = append(c.found, fmt.Sprintf("%s: %d lines, the limit is %d: give one of its ideas a file of its own", name, n, c.lines))
		}
	}
	for _, spec := range parsed.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return err
		}
		rel, ok := strings.CutPrefix(imported+"/", c.module+"/")
		if !ok {
			continue
		}
		rel = strings.TrimSuffix(rel, "/")
		if why := c.refuse(folder, rel, test); why != "" {
			c.found = append(c.found, fmt.Sprintf("%s:%d: %s imports %s: %s",
				name, files.Position(spec.Pos()).Line, folder, rel, why))
		}
	}
	return nil
}

// refuse says why folder may not import another, or "" when it may.
func (c *check) refuse(folder, imported string, test bool) string {
	from, to := topOf(folder), topOf(imported)
	own := c.folders[folder]
	_, listed := c.folders[imported]
	switch {
	case to == "cmd" && !slices.Contains(own, imported):
		return "nobody imports a command"
	case !listed:
		return "no such folder is listed in import_test.go"
	case from == "testdata":
		return ""
	case isTestHelp(imported) && !isTestHelp(folder) && !test:
		return "only tests do"
	case to == "testdata":
		if !test {
			return "only tests and testdata do"
		}
	case from == to:
		// The compiler keeps tests from going in circles; within a folder that is enough.
		if !test && !slices.Contains(own, imported) && !slices.Contains(own, path.Dir(imported)+"/*") {
			return "not among what import_test.go lets it import of its own folder: " + list(own)
		}
	case slices.Index(line, to) < slices.Index(line, from):
		return to + " stands to its left"
	default:
		if may, ok := c.narrow[folder]; ok && !test && !slices.Contains(may, imported) {
			return "not among what import_test.go lets it import of other folders: " + list(may)
		}
	}
	return ""
}

// isTestHelp reports whether a folder helps tests alone, as its name's end says.
func isTestHelp(folder string) bool { return strings.HasSuffix(folder, "test") }

func list(folders []string) string {
	if len(folders) == 0 {
		return "nothing"
	}
	return strings.Join(folders, ", ")
}

// topOf is the first element of a folder's path.
func topOf(folder string) string {
	top, _, _ := strings.Cut(folder, "/")
	return top
}
