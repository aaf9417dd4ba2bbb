package plan

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
)

// Graph is a whole plan. Dependencies point to earlier nodes only, so it has no
// cycle.
type Graph struct {
	Name  string
	Nodes []*Node
}

// UndoTask tells whether a failure in n undoes its whole task.
func (n *Node) UndoTask() bool { return n.undoTask }

// checkNodes proves that no node is in the graph twice (the same Fragment value
// joined twice is the one way to make a cycle) and that ids are unique.
func (g *Graph) checkNodes() error {
	var errs []error
	once, ids := map[*Node]bool{}, map[string]bool{}
	for _, n := range g.Nodes {
		switch {
		case once[n]:
			errs = append(errs, fmt.Errorf("%s is in the plan twice: a fragment may be joined only once", n.ID))
		case ids[n.ID]:
			errs = append(errs, fmt.Errorf("two steps are called %s: give one of them another name", n.ID))
		}
		once[n], ids[n.ID] = true, true
		for _, d := range n.Deps {
			if !once[d.On] {
				errs = append(errs, fmt.Errorf("%s waits for %s, which does not come before it", n.ID, d.On.ID))
			}
		}
	}
	return errors.Join(errs...)
}

// checkOutputs proves that whoever reads an output runs after its writer.
func (g *Graph) checkOutputs() []error {
	var errs []error
	before := map[*Node]map[string]bool{} // what was surely written when a node begins
	for _, n := range g.Nodes {
		have := map[string]bool{}
		for _, d := range n.Deps {
			for name := range before[d.On] {
				have[name] = true
			}
			for _, w := range d.On.Step.Meta().Writes {
				have[w.Name()] = true
			}
		}
		before[n] = have
		for _, k := range n.Step.Meta().Reads {
			if !have[k.Name()] {
				errs = append(errs, fmt.Errorf("%s reads %s, which no step before it writes", n.ID, k.Name()))
			}
		}
	}
	return errs
}

// Lack is one artifact that a plan needs and a lock does not hold.
type Lack struct {
	Need     manifest.Need     `json:"need"`
	Platform manifest.Platform `json:"platform"`
	Steps    []string          `json:"steps"`
	Hosts    []string          `json:"hosts"`
}

// LackError lists all that a lock lacks for a plan.
type LackError struct{ Lacks []Lack }

func (e *LackError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "the bundle lacks %d artifacts that the plan needs", len(e.Lacks))
	for _, l := range e.Lacks {
		fmt.Fprintf(&b, "\n  %s %s for %s: step %s on %s", l.Need.Kind, l.Need.Name, l.Platform, strings.Join(l.Steps, ", "), strings.Join(l.Hosts, ", "))
	}
	return b.String()
}

// CheckBundle proves l complete for g, before any host is touched.
func (g *Graph) CheckBundle(l *manifest.Lock, set string) error {
	var lacks []Lack
	for _, n := range g.Nodes {
		for _, need := range n.Step.Meta().Needs {
			if need.Set == "" {
				need.Set = set
			}
			for _, h := range n.Hosts {
				if p := PlatformOf(h); !holds(l, need, p) {
					lacks = addLack(lacks, need, p, n.Step, h.Name)
				}
			}
		}
	}
	if len(lacks) == 0 {
		return nil
	}
	return &LackError{Lacks: lacks}
}

// PlatformOf gives the platform that a host is declared to have.
func PlatformOf(h manifest.Host) manifest.Platform {
	return manifest.Platform{OS: "linux", Arch: h.Arch}
}

func holds(l *manifest.Lock, n manifest.Need, p manifest.Platform) bool {
	if n.Kind != manifest.Image {
		_, err := l.File(n, p)
		return err == nil
	}
	im, err := l.Image(n)
	return err == nil && slices.ContainsFunc(im.Platforms, func(x manifest.PlatformImage) bool { return x.Platform == p })
}

func addLack(all []Lack, n manifest.Need, p manifest.Platform, s steps.Step, host string) []Lack {
	i := slices.IndexFunc(all, func(l Lack) bool { return l.Need == n && l.Platform == p })
	if i < 0 {
		all, i = append(all, Lack{Need: n, Platform: p}), len(all)
	}
	if name := s.Meta().Name; !slices.Contains(all[i].Steps, name) {
		all[i].Steps = append(all[i].Steps, name)
	}
	if !slices.Contains(all[i].Hosts, host) {
		all[i].Hosts = append(all[i].Hosts, host)
	}
	return all
}
