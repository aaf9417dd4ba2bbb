package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
)

// MissingArtifact is one artifact that a plan needs and a lock does not contain.
type MissingArtifact struct {
	Need     manifest.Need     `json:"need"`
	Platform manifest.Platform `json:"platform"`
	Steps    []string          `json:"steps"`
	Hosts    []string          `json:"hosts"`

	other bool // of another set than the config's
}

// MissingArtifactsError lists everything that a lock lacks for a plan.
type MissingArtifactsError struct{ Artifacts []MissingArtifact }

func (e *MissingArtifactsError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "the bundle lacks %d artifacts that the plan needs", len(e.Artifacts))
	for _, l := range e.Artifacts {
		of := ""
		if l.other {
			of = " of " + l.Need.Set
		}
		fmt.Fprintf(&b, "\n  %s %s%s for %s: step %s on %s", l.Need.Kind, l.Need.Name, of, l.Platform, strings.Join(l.Steps, ", "), strings.Join(l.Hosts, ", "))
	}
	return b.String()
}

// Sets returns the sets of a lock that g opens artifacts of, sorted; set is the default for
// nodes without a set.
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

// CheckBundle checks that l has every artifact that g needs, before any host is changed. set
// is the default for nodes without a set. The error is a *MissingArtifactsError.
func (g *Graph) CheckBundle(l *manifest.Lock, set string) error {
	var lacks []MissingArtifact
	g.eachNeed(set, func(need manifest.Need, h manifest.Host, s steps.Step) {
		if p := PlatformOf(h); !holds(l, need, p) {
			lacks = addLack(lacks, MissingArtifact{Need: need, Platform: p, other: need.Set != set}, s, h.Name)
		}
	})
	if len(lacks) == 0 {
		return nil
	}
	return &MissingArtifactsError{Artifacts: lacks}
}

// PlatformOf returns the platform that the config declares for a host.
func PlatformOf(h manifest.Host) manifest.Platform {
	return manifest.Platform{OS: "linux", Arch: h.Arch}
}

// holds reports whether l has the artifact of n for p. The platforms of an image that is not
// pinned yet are unknown; it will be pinned for those of the lock.
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

func addLack(all []MissingArtifact, l MissingArtifact, s steps.Step, host string) []MissingArtifact {
	i := slices.IndexFunc(all, func(x MissingArtifact) bool { return x.Need == l.Need && x.Platform == l.Platform })
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

// Unused returns the ids of what l contains of a set, and of the sets that gs use, and that
// none of gs needs. Of an archive with several files it lists each unused file.
func Unused(l *manifest.Lock, set string, gs ...*Graph) []string {
	files, images := map[manifest.Blob]bool{}, map[string]bool{}
	sets := []string{set}
	for _, g := range gs {
		sets = append(sets, g.Sets(set)...)
		g.eachNeed(set, func(n manifest.Need, h manifest.Host, _ steps.Step) {
			switch n.Kind {
			case manifest.Image:
				all, _ := l.ImagesFor(n) // a missing image cannot be unused
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

// eachNeed calls do for every need of every step on every host, with its set: its own, that of
// its node, or the given one. It skips steps that change nothing: they only compare the needs
// of other steps with the space on hosts.
func (g *Graph) eachNeed(set string, do func(manifest.Need, manifest.Host, steps.Step)) {
	for _, n := range g.all() {
		if n.Step.Meta().ReadOnly {
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
