package main

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
)

// figure is one line of the table. Ours is to be at most Must, and better at
// most Beyond. Without Must it is there to compare with.
type figure struct {
	Name   string  `json:"name"`
	Unit   string  `json:"unit,omitempty"`
	Must   float64 `json:"must,omitempty"`
	Beyond float64 `json:"beyond,omitempty"`
	Ours   float64 `json:"ours"`
}

// verdict says which of the two is reached.
func (f figure) verdict() string {
	switch {
	case f.Must == 0:
		return ""
	case f.Ours <= f.Beyond:
		return "beyond"
	case f.Ours <= f.Must:
		return "reached"
	}
	return "MISSED"
}

// figuresOf makes the table's lines of rounds.
func figuresOf(rounds []round) []figure {
	ratio := func(a, b func(round) sample) float64 {
		return median(rounds, func(r round) float64 { return a(r).Wall / b(r).Wall })
	}
	build := func(r round) sample { return r.Build }
	floor := func(r round) sample { return r.Floor }
	plain := func(r round) sample { return r.Plain }
	return []figure{
		{Name: "build on a 250 MB/s link / floor", Must: 1.05, Beyond: 1.02,
			Ours: ratio(func(r round) sample { return r.LinkBuild }, func(r round) sample { return r.LinkFloor })},
		{Name: "build at full speed / floor", Must: 2.2, Beyond: 1.6, Ours: ratio(build, floor)},
		{Name: "build at full speed / floor that hashes", Ours: ratio(build, func(r round) sample { return r.Hashed })},
		{Name: "build / (download + sha256 + tar + zstd -3)", Ours: ratio(build, plain)},
		{Name: "output / (tar + zstd -3)", Must: 1.01, Beyond: 1,
			Ours: median(rounds, func(r round) float64 { return float64(r.Build.Output) / float64(r.Plain.Output) })},
		{Name: "peak memory of build", Unit: "MB", Must: 128, Beyond: 64, Ours: median(rounds, func(r round) float64 { return float64(r.Build.Memory) / 1e6 })},
		{Name: "peak disk of build / output", Must: 1.02, Beyond: 1.005,
			Ours: median(rounds, func(r round) float64 { return float64(r.Build.Disk) / float64(r.Build.Output) })},
		{Name: "verify / sha256 on two workers", Must: 1.2, Beyond: 1.05,
			Ours: ratio(func(r round) sample { return r.Verify }, func(r round) sample { return r.Hash })},
		{Name: "peak memory of verify", Unit: "MB", Must: 128, Beyond: 64, Ours: median(rounds, func(r round) float64 { return float64(r.Verify.Memory) / 1e6 })},
		{Name: "rebuild with a warm cache / first build", Must: 0.6, Beyond: 0.4, Ours: ratio(func(r round) sample { return r.Rebuild }, build)},
	}
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

// table prints the figures beside those to reach.
func table(w io.Writer, figures []figure) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "FIGURE\tMUST\tBEYOND\tOURS\t\t")
	number := func(f figure, x float64) string {
		switch {
		case x == 0:
			return "-"
		case f.Unit != "":
			return fmt.Sprintf("%.0f %s", x, f.Unit)
		}
		return fmt.Sprintf("%.3f", x)
	}
	for _, f := range figures {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t\n", f.Name, number(f, f.Must), number(f, f.Beyond), number(f, f.Ours), f.verdict())
	}
	_ = t.Flush() // a terminal that is gone reads no table
}
