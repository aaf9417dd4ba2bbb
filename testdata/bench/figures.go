package main

import (
	"fmt"
	"slices"
)

// goal is the target of a figure. Unless AtLeast is set, less is better. Beyond is 0 if there
// is none, unless Must is 0 too.
type goal struct {
	Must    float64 `json:"must"`
	Beyond  float64 `json:"beyond"`
	AtLeast bool    `json:"atLeast,omitempty"`
}

// figure is one line of the table. Without a goal it is only for comparison.
type figure struct {
	Name string  `json:"name"`
	Unit string  `json:"unit,omitempty"`
	Goal *goal   `json:"goal,omitempty"`
	Ours float64 `json:"ours"`
	// For a missed figure: what to examine.
	Step  string `json:"step,omitempty"`  // the run of kubexm, as named by -wrap
	Bound string `json:"bound,omitempty"` // what the machine allows
}

// The verdicts on a figure.
const (
	beyond  = "beyond"
	reached = "reached"
	missed  = "MISSED"
)

// verdict returns which of the two targets is reached.
func (f figure) verdict() string {
	g := f.Goal
	if g == nil {
		return ""
	}
	reaches := func(x float64) bool { return g.AtLeast && f.Ours >= x || !g.AtLeast && f.Ours <= x }
	switch {
	case reaches(g.Beyond) && (g.Beyond > 0 || g.Must == 0):
		return beyond
	case reaches(g.Must):
		return reached
	}
	return missed
}

func most(must, better float64) *goal  { return &goal{Must: must, Beyond: better} }
func least(must, better float64) *goal { return &goal{Must: must, Beyond: better, AtLeast: true} }

// measured is the input of the figures.
type measured struct {
	options
	Rounds  []round
	Machine machine
	Bytes   int64 // downloaded by a build
	Delta   delta
}

// ratio is the median of a/b, each taken in one round.
func (m measured) ratio(a, b func(round) sample) float64 {
	return median(m.Rounds, func(r round) float64 { return a(r).Wall / b(r).Wall })
}

// seconds is the median duration of s.
func (m measured) seconds(s func(round) sample) float64 {
	return median(m.Rounds, func(r round) float64 { return s(r).Wall })
}

// megabytes is the median of a size.
func (m measured) megabytes(of func(round) int64) float64 {
	return median(m.Rounds, func(r round) float64 { return float64(of(r)) / 1e6 })
}

// The samples of a round, as parameters.
var (
	floorOf   = func(r round) sample { return r.Floor }
	buildOf   = func(r round) sample { return r.Build }
	rebuildOf = func(r round) sample { return r.Rebuild }
	hashedOf  = func(r round) sample { return r.Hashed }
	plainOf   = func(r round) sample { return r.Plain }
	verifyOf  = func(r round) sample { return r.Verify }
	hashOf    = func(r round) sample { return r.Hash }
	pushOf    = func(r round) sample { return r.Push }
	orasOf    = func(r round) sample { return r.Oras }
	seedOf    = func(r round) sample { return r.Seed }
)

// figures returns the table's lines for the measured parts.
func (m measured) figures() (rows []figure) {
	for _, part := range []struct {
		name string
		rows func() []figure
	}{
		{partBuild, m.ofBuilds}, {partPush, m.ofTransfers}, {partHosts, m.ofHosts}, {partLarge, m.ofLarge}, {partPeers, m.ofPeers},
	} {
		if m.has(part.name) {
			rows = append(rows, part.rows()...)
		}
	}
	return rows
}

func (m measured) ofBuilds() []figure {
	return []figure{
		{Name: "build on a 250 MB/s link / floor", Goal: most(1.05, 1.02), Step: "linked",
			Ours: m.ratio(func(r round) sample { return r.LinkBuild }, func(r round) sample { return r.LinkFloor })},
		{Name: "build at full speed / floor", Goal: most(2.2, 1.6), Step: "build", Ours: m.ratio(buildOf, floorOf),
			Bound: m.Machine.bound(m.Bytes, "the floor", m.seconds(floorOf))},
		{Name: "build at full speed / floor that hashes", Ours: m.ratio(buildOf, hashedOf)},
		{Name: "build / (download + sha256 + tar + zstd -3)", Ours: m.ratio(buildOf, plainOf)},
		{Name: "output / (tar + zstd -3)", Goal: most(1.01, 1), Step: "build",
			Ours: median(m.Rounds, func(r round) float64 { return float64(r.Build.Output) / float64(r.Plain.Output) })},
		{Name: "peak memory of build", Unit: "MB", Goal: most(128, 64), Step: "build", Ours: m.megabytes(func(r round) int64 { return r.Build.Memory })},
		{Name: "peak disk of build / output", Goal: most(1.02, 1.005), Step: "build",
			Ours: median(m.Rounds, func(r round) float64 { return float64(r.Build.Disk) / float64(r.Build.Output) })},
		{Name: "verify / sha256 on two workers", Goal: most(1.2, 1.05), Step: "verify", Ours: m.ratio(verifyOf, hashOf)},
		{Name: "peak memory of verify", Unit: "MB", Goal: most(128, 64), Step: "verify", Ours: m.megabytes(func(r round) int64 { return r.Verify.Memory })},
		{Name: "rebuild with a warm cache / first build", Goal: most(0.6, 0.4), Step: "rebuild", Ours: m.ratio(rebuildOf, buildOf),
			Bound: m.Machine.bound(m.Bytes, "the build", m.seconds(buildOf))},
		{Name: "delta bundle / bytes the site lacks", Goal: most(1.01, 0), Step: "delta", Ours: float64(m.Delta.Archive) / float64(m.Delta.Lacking)},
	}
}

func (m measured) ofTransfers() []figure {
	return []figure{
		{Name: "push from the archive / oras ×4 from a layout", Goal: most(1.10, 1), Step: "push", Ours: m.ratio(pushOf, orasOf),
			Bound: "the registry hashes it too, as everybody's; once more, as oras does not: " + m.Machine.bound(m.Bytes, "oras", m.seconds(orasOf))},
		{Name: "peak memory of push", Unit: "MB", Goal: most(64, 32), Step: "push", Ours: m.megabytes(func(r round) int64 { return r.Push.Memory })},
		{Name: "temporary disk of push", Unit: "MB", Goal: most(0, 0), Step: "push", Ours: m.megabytes(func(r round) int64 { return r.Push.Disk })},
		{Name: "seed a registry from the archive / oras ×4, image by image", Ours: m.ratio(seedOf, func(r round) sample { return r.OrasSeed })},
		{Name: "temporary disk of seeding", Unit: "MB", Goal: most(0, 0), Ours: m.megabytes(func(r round) int64 { return r.Seed.Disk })},
		{Name: "peak memory of seeding", Unit: "MB", Ours: m.megabytes(func(r round) int64 { return r.Seed.Memory })},
	}
}

// ofPeers returns the rows of the available peers.
func (m measured) ofPeers() (rows []figure) {
	for _, row := range []struct {
		figure
		theirs func(round) *sample
		ours   func(round) sample
	}{
		{figure{Name: "Hauler (sync + save) / build", Goal: least(2, 3)}, func(r round) *sample { return r.HaulerBuild }, buildOf},
		{figure{Name: "Hauler (load + copy, images) / seed a registry", Goal: least(4, 5)}, func(r round) *sample { return r.HaulerPush }, seedOf},
		{figure{Name: "Zarf without SBOM / build with SBOM", Goal: least(4, 5)}, func(r round) *sample { return r.ZarfBuild }, buildOf},
	} {
		if slices.ContainsFunc(m.Rounds, func(r round) bool { return row.theirs(r) == nil }) {
			continue
		}
		f := row.figure
		f.Step, f.Bound = "build", m.Machine.bound(m.Bytes, "the build", m.seconds(buildOf))
		f.Ours = m.ratio(func(r round) sample { return *row.theirs(r) }, row.ours)
		rows = append(rows, f)
	}
	return rows
}

func median(rounds []round, of func(round) float64) float64 {
	var all []float64
	for _, r := range rounds {
		all = append(all, of(r))
	}
	slices.Sort(all)
	n := len(all)
	return (all[(n-1)/2] + all[n/2]) / 2
}

// misses returns a line for each missed figure: by how much, the limiting factor, and which
// profile shows where the time went. The last line explains how to create profiles.
func misses(figures []figure) (lines []string) {
	for _, f := range figures {
		if f.verdict() != missed {
			continue
		}
		line := fmt.Sprintf("missed: %s is %s, to be %s", f.Name, f.number(f.Ours), f.limit(f.Goal.Must))
		if f.Bound != "" {
			line += "; " + f.Bound
		}
		if f.Unit == "" {
			line += "; profile: build/perf-" + f.Step + ".data"
		}
		lines = append(lines, line)
	}
	if len(lines) > 0 {
		lines = append(lines, `profiles are made by make bench BENCH="-rounds 1 -wrap 'perf record -g -o build/perf-{}.data'"`)
	}
	return lines
}
