package e2e

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/distribution/reference"
)

// imageRow is what is known of one image of one chart.
type imageRow struct {
	chart, image string
	in           []string // the kinds of objects that kubexm found it in; none: it did not
	when         string   // a pod of the chart first asked for it; "" is never
	why          string   // no pod asked for it
}

// found gives what kubexm finds in each chart: the kinds that ask for an image, by
// add-on and image.
func (s *labSite) found(t *testing.T) map[string]map[string][]string {
	t.Helper()
	r := s.up.must(t, append(s.sources(), "bundle", "images", "-o", "json")...)
	var list struct {
		Images []struct {
			Image  string
			Addons []string
			Found  []struct{ Kind string }
		}
	}
	if err := json.Unmarshal([]byte(r.stdout), &list); err != nil {
		t.Fatal(err)
	}
	all := map[string]map[string][]string{}
	for _, im := range list.Images {
		var kinds []string
		for _, p := range im.Found {
			kinds = append(kinds, p.Kind)
		}
		slices.Sort(kinds)
		for _, owner := range im.Addons {
			if all[owner] == nil {
				all[owner] = map[string][]string{}
			}
			all[owner][im.Image] = slices.Compact(kinds)
		}
	}
	return all
}

// container is what matters here of one.
type container struct{ Image string }

// pulled is what a kubelet says of an image that a pod asks for, there or not.
var pulled = regexp.MustCompile(`mage "([^"]+)"`)

// asksOfPods gives what the pods of each add-on's namespace ask for: those that are
// there, and those that have been, such as a hook's, of whom the kubelets' events tell.
func (s *labSite) asksOfPods(t *testing.T, table chartTable) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	for _, c := range table.Charts {
		var pods struct {
			Items []struct {
				Spec struct {
					Containers, InitContainers, EphemeralContainers []container
				}
			}
		}
		if err := json.Unmarshal([]byte(s.kubectl(t, "-n", c.Addon.In(), "get", "pods", "-o", "json")), &pods); err != nil {
			t.Fatal(err)
		}
		var refs []string
		for _, p := range pods.Items {
			for _, one := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers, p.Spec.EphemeralContainers) {
				refs = append(refs, full(t, one.Image))
			}
		}
		for _, reason := range []string{"Pulling", "Pulled"} {
			said := s.kubectl(t, "-n", c.Addon.In(), "get", "events", "--field-selector", "reason="+reason, "-o", "jsonpath={range .items[*]}{.message}{\"\\n\"}{end}")
			for _, m := range pulled.FindAllStringSubmatch(said, -1) {
				refs = append(refs, full(t, m[1]))
			}
		}
		slices.Sort(refs)
		all[c.Addon.Name] = slices.Compact(refs)
	}
	return all
}

// held gives every image that the runtimes of the cluster's hosts hold, which is
// what they were asked for: nothing else brings an image there.
func (s *labSite) held(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, h := range s.Hosts {
		for ref := range strings.FieldsSeq(s.on(t, h.Name, "ctr -n k8s.io images ls -q")) {
			if !strings.HasPrefix(ref, "sha256:") && !strings.Contains(ref, "@") {
				all = append(all, full(t, ref))
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// full writes a reference out.
func full(t *testing.T, ref string) string {
	t.Helper()
	named, err := reference.ParseNormalizedNamed(ref)
	if err != nil {
		t.Fatalf("image %q: %v", ref, err)
	}
	return reference.TagNameOnly(named).String()
}

// phase is what pods had asked for up to a point, by add-on.
type phase struct {
	name  string
	asked map[string][]string
}

// compare holds what was found in each chart against what its pods asked for, and
// what they asked for against what the runtimes hold. It gives a row for each image,
// and what is wrong.
func compare(table chartTable, found map[string]map[string][]string, phases []phase, held []string) (rows []imageRow, wrong []string) {
	asked := phases[len(phases)-1].asked
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	for _, c := range table.Charts {
		name := c.Addon.Name
		if len(asked[name]) == 0 {
			say("%s: no pod asked for anything", name)
		}
		list := slices.Sorted(maps.Keys(found[name]))
		for _, image := range asked[name] {
			if !slices.Contains(list, image) {
				say("%s: a pod asked for %s, which was not found in the chart", name, image)
				list = append(list, image)
			}
			if !slices.Contains(held, image) {
				say("%s: a pod asked for %s, and no host holds it", name, image)
			}
		}
		for _, image := range list {
			row := imageRow{chart: name, image: image, in: found[name][image], why: c.Unasked[image]}
			if i := slices.IndexFunc(phases, func(p phase) bool { return slices.Contains(p.asked[name], image) }); i >= 0 {
				row.when = phases[i].name
			}
			switch {
			case row.when != "" && row.why != "":
				say("%s: a pod asked for %s, and testdata/charts.yaml says why none does: %s", name, image, row.why)
			case row.when == "" && row.why == "":
				say("%s: no pod asked for %s, and testdata/charts.yaml does not say why", name, image)
			case row.when == "" && slices.Contains(held, image):
				say("%s: no pod asked for %s, and a host holds it", name, image)
			}
			rows = append(rows, row)
		}
	}
	return rows, wrong
}

// summary counts by chart.
func summary(rows []imageRow) []string {
	lines := []string{fmt.Sprintf("%-26s %-6s %-6s %-11s %s", "CHART", "FOUND", "ASKED", "ONLY FOUND", "ONLY ASKED")}
	for i, j := 0, 0; i < len(rows); i = j {
		found, asked, onlyAsked := 0, 0, 0
		var only []string
		for ; j < len(rows) && rows[j].chart == rows[i].chart; j++ {
			r := rows[j]
			switch {
			case len(r.in) == 0:
				onlyAsked++
			case r.when == "":
				only = append(only, fmt.Sprintf("  %s: %s", r.image, r.why))
				found++
			default:
				found++
			}
			if r.when != "" {
				asked++
			}
		}
		lines = append(lines, fmt.Sprintf("%-26s %-6d %-6d %-11d %d", rows[i].chart, found, asked, len(only), onlyAsked))
		lines = append(lines, only...)
	}
	return lines
}

// seen stands around the table of docs/charts.md.
const seen = "<!-- seen in the lab: make charts UPDATE=1 writes this table -->"

// documented compares the table of docs/charts.md with what was seen.
func documented(t *testing.T, table chartTable, rows []imageRow) {
	t.Helper()
	const file = "../../docs/charts.md"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	part := strings.Split(string(text), seen)
	if len(part) != 3 {
		t.Fatalf("%s has %d marks of its table", file, len(part)-1)
	}
	want := "\n" + markdown(table, rows)
	if part[1] == want {
		return
	}
	if !*updateCharts || t.Failed() {
		t.Errorf("%s says otherwise than what was seen; make charts UPDATE=1 writes:\n%s", file, want)
		return
	}
	if err := os.WriteFile(file, []byte(part[0]+seen+want+seen+part[2]), 0o644); err != nil {
		t.Fatal(err)
	}
}

func markdown(table chartTable, rows []imageRow) string {
	var b bytes.Buffer
	fmt.Fprintf(&b, "| chart | from | its pods run |\n|---|---|---|\n")
	for _, c := range table.Charts {
		from := "a folder beside the config"
		switch {
		case strings.HasPrefix(c.Addon.Source, "oci://"):
			from = "a registry, " + c.Addon.Source
		case strings.HasPrefix(c.Addon.Source, "https://"):
			from = "a repository, " + c.Addon.Source
		}
		if c.Needs != nil {
			from += "; a chart that it depends on from " + c.Needs.Repository
		}
		_, version, _ := strings.Cut(c.Module, "@")
		fmt.Fprintf(&b, "| %s %s | %s | %s |\n", c.Addon.Name, strings.TrimPrefix(cmp.Or(c.Addon.Version, version), "v"), from, c.Runs)
	}
	fmt.Fprintf(&b, "\n| chart | image | found in | asked for by a pod |\n|---|---|---|---|\n")
	for _, r := range rows {
		fmt.Fprintf(&b, "| %s | `%s` | %s | %s |\n", r.chart, r.image, strings.Join(r.in, ", "), cmp.Or(r.when, "no: "+r.why))
	}
	return b.String()
}
