package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
)

// Lack is one artifact that a plan needs and a lock does not hold.
type Lack struct {
	Need     manifest.Need     `json:"need"`
	Platform manifest.Platform `json:"platform"`
	Steps    []string          `json:"steps"`
	Hosts    []string          `json:"hosts"`

	other bool // of another set than that of the config
}

// LackError lists all that a lock lacks for a plan.
type LackError struct{ Lacks []Lack }

func (e *LackError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "the bundle lacks %d artifacts that the plan needs", len(e.Lacks))
	for _, l := range e.Lacks {
		of := ""
		if l.other {
			of = " of " + l.Need.Set
		}
		fmt.Fprintf(&b, "\n  %s %s%s for %s: step %s on %s", l.Need.Kind, l.Need.Name, of, l.Platform, strings.Join(l.Steps, ", "), strings.Join(l.Hosts, ", "))
	}
	return b.String()
}

// Sets gives the sets of a lock that g opens artifacts of, sorted, where set is that of
// the nodes which name none.
func (g *Graph) Sets(set string) []string {
	var out []string
	for _, n := range g.all() {
		if s := cmp.Or(n.Set, set); !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	slices.Sort(out)
	return out
}

// CheckBundle proves l complete for g, before any host is touched. set is that of the
// nodes which name none.
func (g *Graph) CheckBundle(l *manifest.Lock, set string) error {
	var lacks []Lack
	g.eachNeed(set, func(need manifest.Need, h manifest.Host, s steps.Step) {
		if p := PlatformOf(h); !holds(l, need, p) {
			lacks = addLack(lacks, Lack{Need: need, Platform: p, other: need.Set != set}, s, h.Name)
		}
	})
	if len(lacks) == 0 {
		return nil
	}
	return &LackError{Lacks: lacks}
}

// PlatformOf gives the platform that a host is declared to have.
func PlatformOf(h manifest.Host) manifest.Platform {
	return manifest.Platform{OS: "linux", Arch: h.Arch}
}

// holds tells whether l has what n means for p. Of an image that is not pinned
// yet, nobody knows the platforms: it will be asked for those of the lock.
func holds(l *manifest.Lock, n manifest.Need, p manifest.Platform) bool {
	switch n.Kind {
	case manifest.Image:
	case manifest.Packages:
		_, err := l.Repository(n, p)
		return err == nil
	default:
		_, err := l.File(n, p)
		return err == nil
	}
	all, err := l.ImagesFor(n)
	if err != nil {
		return false
	}
	return !slices.ContainsFunc(all, func(im manifest.ImagePin) bool {
		if len(im.Platforms) == 0 {
			return !slices.Contains(l.Platforms, p)
		}
		return !slices.ContainsFunc(im.Platforms, func(x manifest.PlatformImage) bool { return x.Platform == p })
	})
}

func addLack(all []Lack, l Lack, s steps.Step, host string) []Lack {
	i := slices.IndexFunc(all, func(x Lack) bool { return x.Need == l.Need && x.Platform == l.Platform })
	if i < 0 {
		all, i = append(all, l), len(all)
	}
	if name := s.Meta().Name; !slices.Contains(all[i].Steps, name) {
		all[i].Steps = append(all[i].Steps, name)
	}
	if !slices.Contains(all[i].Hosts, host) {
		all[i].Hosts = append(all[i].Hosts, host)
	}
	return all
}

// Unused lists what l holds of a set, and of the sets that gs name, and none of gs needs,
// by id; of an archive of several files, each file that is not needed.
func Unused(l *manifest.Lock, set string, gs ...*Graph) []string {
	files, images := map[manifest.Blob]bool{}, map[string]bool{}
	sets := []string{set}
	for _, g := range gs {
		sets = append(sets, g.Sets(set)...)
		g.eachNeed(set, func(n manifest.Need, h manifest.Host, _ steps.Step) {
			switch n.Kind {
			case manifest.Image:
				all, _ := l.ImagesFor(n) // what is not there cannot be unused
				for _, im := range all {
					images[im.ID] = true
				}
			case manifest.Packages:
				if a, err := l.Repository(n, PlatformOf(h)); err == nil {
					for _, b := range a.Blobs() {
						files[b] = true
					}
				}
			default:
				if b, err := l.File(n, PlatformOf(h)); err == nil {
					files[b] = true
				}
			}
		})
	}
	named := func(of []string) bool {
		return slices.ContainsFunc(of, func(s string) bool { return slices.Contains(sets, s) })
	}
	var out []string
	for _, a := range l.Artifacts {
		if !named(a.Sets) {
			continue
		}
		for _, b := range a.Blobs() {
			switch {
			case files[b]:
			case a.Single():
				out = append(out, a.ID)
			default:
				out = append(out, a.ID+"#"+b.Name)
			}
		}
	}
	for _, im := range l.Images {
		if named(im.Sets) && !images[im.ID] {
			out = append(out, im.ID)
		}
	}
	slices.Sort(out)
	return out
}

// eachNeed hands every need of every step on every host to do, with its set: its own,
// that of its node, or the given one. A step
// that only looks asks for nothing: what it weighs, others bring, to some of its hosts.
func (g *Graph) eachNeed(set string, do func(manifest.Need, manifest.Host, steps.Step)) {
	for _, n := range g.all() {
		if n.Step.Meta().LooksOnly {
			continue
		}
		for _, need := range n.Step.Meta().Needs {
			need.Set = cmp.Or(need.Set, n.Set, set)
			for _, h := range g.HostsOf(n) {
				do(need, h, n.Step)
			}
		}
	}
}
