package main

import (
	"bytes"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/mensylisir/kubexm/installer/pipeline"
	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
)

// step describes one step, collected from all plans.
type step struct {
	name      string
	does      string   // description
	where     []string // pipeline: module/task
	needs     []string // artifacts of the bundle
	reads     []string
	writes    []string // outputs
	resources []string // that it applies or removes
	meta      steps.Meta
	inverse   string // the undo step, or why there is none
}

// variable matches the steps that exist once for each add-on.
var variable = regexp.MustCompile(`^(addon\.(install|remove|wait))-.+`)

// catalogued returns the name of a step in the catalogue.
func catalogued(name string) string {
	if name == "addon.install-helm" || name == "addon.remove-helm" {
		return name
	}
	return variable.ReplaceAllString(name, "$1-NAME")
}

// planned collects the steps of all plans of the configs in folder.
func planned(folder string) (map[string]*step, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.txtar"))
	if err != nil {
		return nil, err
	}
	found := map[string]*step{}
	for _, file := range files {
		a, err := txtar.ParseFile(file)
		if err != nil {
			return nil, err
		}
		c, problems := manifest.Decode(bytes.NewReader(a.Files[0].Data))
		if err := problems.Err(); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		for _, p := range pipeline.All() {
			for _, drain := range drains(p) {
				scope, ok := pipeline.ExampleScope(p, c)
				if !ok {
					continue
				}
				scope.Drain = drain
				g, err := plan.Build(p, scope)
				if err != nil {
					return nil, fmt.Errorf("%s: %w", file, err)
				}
				for _, n := range g.Nodes {
					add(found, g, n, c)
				}
			}
		}
	}
	for _, s := range found {
		for _, l := range []*[]string{&s.where, &s.needs, &s.reads, &s.writes} {
			slices.Sort(*l)
			*l = slices.Compact(*l)
		}
	}
	return found, nil
}

// drains returns the ways in which a pipeline drains nodes.
func drains(p plan.Pipeline) []plan.Drain {
	if p.Drains == plan.DrainOnRequest {
		return []plan.Drain{{}, {Requested: true}}
	}
	return []plan.Drain{{}}
}

func add(found map[string]*step, g *plan.Graph, n *plan.Node, c *manifest.Cluster) {
	m := n.Step.Meta()
	name := catalogued(m.Name)
	s := found[name]
	if s == nil {
		s = &step{name: name, meta: m}
		found[name] = s
	}
	s.where = append(s.where, g.Name+": "+n.Task)
	for _, need := range m.Needs {
		s.needs = append(s.needs, string(need.Kind)+" "+need.Name)
	}
	for _, k := range m.Reads {
		s.reads = append(s.reads, k.Name())
	}
	for _, k := range m.Writes {
		s.writes = append(s.writes, k.Name())
	}
	l, ok := n.Step.(steps.Lister)
	if !ok {
		return
	}
	for _, h := range g.HostsOf(n) {
		for _, r := range l.Resources(&steps.Host{Host: h, Cluster: c}) {
			if !slices.Contains(s.resources, r) {
				s.resources = append(s.resources, r)
			}
		}
	}
}

// limit formats a step's timeout; "" if it sets none.
func limit(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return d.String()
}
