package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"
)

// Report is the result of a run, as stored in stages.json.
type Report struct {
	Began   time.Time `json:"began"`
	Seconds float64   `json:"seconds"`
	Stages  []Outcome `json:"stages"`
	Flakes  []string  `json:"flakes"` // tests that failed, and passed when they were run again alone
}

// Outcome is the result of one stage.
type Outcome struct {
	Name    string  `json:"name"`
	Level   string  `json:"level"`
	Result  string  `json:"result"`
	Seconds float64 `json:"seconds"`
	Warm    Seconds `json:"warm_budget_seconds"`
	Cold    Seconds `json:"cold_budget_seconds"`
}

// over reports whether a stage exceeded its budget for warm caches.
func (o Outcome) over() bool { return o.Seconds > float64(o.Warm) }

// maxFlakes is the maximum number of flaky tests in the summary.
const maxFlakes = 10

// Print prints the summary: a line per stage, then the flaky tests.
func (r Report) Print(out io.Writer) {
	fmt.Fprintln(out)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "level\tstage\tseconds\tbudget\tcold\t\t")
	var budget, cold Seconds
	for _, o := range r.Stages {
		budget, cold = budget+o.Warm, cold+o.Cold
		seconds := fmt.Sprintf("%.0f", o.Seconds)
		var notes []string
		if o.Result != Passed {
			notes = append(notes, o.Result)
		}
		if o.Result == NotRun {
			seconds = "-"
		}
		if o.over() {
			notes = append(notes, "OVER")
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%d\t%s\t\n", o.Level, o.Name, seconds, o.Warm, o.Cold, strings.Join(notes, ", "))
	}
	fmt.Fprintf(w, "\tall\t%.0f\t%d\t%d\t\t\n", r.Seconds, budget, cold)
	_ = w.Flush() // out is the terminal: an error cannot be reported
	for i, name := range r.Flakes {
		if i == maxFlakes-1 && len(r.Flakes) > maxFlakes {
			fmt.Fprintf(out, "FLAKY and %d more, see build/stages.json\n", len(r.Flakes)-i)
			break
		}
		fmt.Fprintf(out, "FLAKY %s\n", name)
	}
}

// Write writes the report as JSON.
func (r Report) Write(name string) error {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(name, append(b, '\n'), 0o644)
}
