package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/mensylisir/kubexm/installer/engine"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
)

// runLine is one line of -o json of the commands that work on hosts: install,
// create, delete and reset. Each line is one JSON object; the last one, and only
// that, is of the type summary. Fields and words are added in later versions, and
// neither renamed nor taken away; docs/run-events.md lists them.
type runLine struct {
	// Type says which of the other fields are there: "step", "finding", "error" or
	// "summary".
	Type string `json:"type"`
	// Time is when it happened, RFC 3339 with fractions of a second.
	Time time.Time `json:"time"`

	// Module, Task ("module/task") and Node ("module/task/step", the id in `kubexm
	// plan`) say where in the plan; of a step, and of an error that comes from one.
	Module string `json:"module,omitempty"`
	Task   string `json:"task,omitempty"`
	Node   string `json:"node,omitempty"`
	// Step is the step's name, "kubeadm.init-control-plane".
	Step string `json:"step,omitempty"`
	// Host is the host's name in the config.
	Host string `json:"host,omitempty"`

	// Outcome of a step: "started", then one of "ran", "already done", "checked" (it
	// only looks), "would run" (dry run), "failed", "interrupted"; between them "tried
	// again" and "waiting", after them "rolled back". A task's rollback has "rolling back" and
	// "rolled back" for each step, and "kept" for one that cannot be undone. "resumed" stands
	// alone: it was not looked at.
	Outcome engine.Outcome `json:"outcome,omitempty"`
	// Seconds is how long the step took.
	Seconds float64 `json:"seconds,omitempty"`
	// Changes is what the step would change; in a dry run.
	Changes []string `json:"changes,omitempty"`

	// Severity of a finding: "error", "warning" or "note". Findings are what checks
	// hold against hosts before anything is changed.
	Severity string `json:"severity,omitempty"`
	// Code of an error is the refusal's word of docs/bundle-format.md; empty where it
	// has none.
	Code string `json:"code,omitempty"`
	// Message says what is wrong; of a finding, an error, and of a step that failed,
	// is tried again, or could not be rolled back. Of a step that waits, what it waits for,
	// and of one that is kept, why.
	Message string `json:"message,omitempty"`
	// Command is the command on the host that an error comes from.
	Command *failedCommand `json:"command,omitempty"`
	// Advice is what can be done about a finding or an error.
	Advice []string `json:"advice,omitempty"`

	// Summary is how the whole command ended.
	Summary *runSummary `json:"summary,omitempty"`
}

// runSummary ends the lines of a run.
type runSummary struct {
	// Pipeline is what was asked for, by the name that `kubexm plan` takes.
	Pipeline string `json:"pipeline,omitempty"`
	Cluster  string `json:"cluster,omitempty"`
	DryRun   bool   `json:"dryRun,omitempty"`
	// ExitCode is the command's; 0 is success. docs/exit-codes.md lists them.
	ExitCode int `json:"exitCode"`
	// Skipped are the checks that were left out.
	Skipped []string `json:"skipped,omitempty"`
	// Steps counts steps on hosts by how they ended.
	Steps tally `json:"steps"`
	// Seconds is how long the run took.
	Seconds float64 `json:"seconds"`
	// Journal is the file with every event of the run; empty where no host was reached.
	Journal string `json:"journal,omitempty"`
	// Receipt is the file that says what was installed; empty where nothing was.
	Receipt string `json:"receipt,omitempty"`
}

// runLines writes them, one at a time.
type runLines struct {
	mu  sync.Mutex
	enc interface{ Encode(any) error }
	err error // the first that writing met
}

func newRunLines(w io.Writer, format string) *runLines {
	if format == "yaml" {
		return &runLines{enc: yamlStream{w}}
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return &runLines{enc: e}
}

func (r *runLines) write(l runLine) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if l.Time.IsZero() {
		l.Time = time.Now()
	}
	if err := r.enc.Encode(l); r.err == nil {
		r.err = err
	}
}

func (r *runLines) event(e engine.Event) {
	r.write(runLine{
		Type: "step", Time: e.Time, Module: e.Module, Task: e.Task, Node: e.Node, Step: e.Step, Host: e.Host,
		Outcome: e.Outcome, Seconds: e.Took.Seconds(), Changes: e.Changes, Message: cmp.Or(e.Error, e.For),
	})
}

func (r *runLines) finding(f steps.Finding) {
	l := runLine{Type: "finding", Step: f.Check, Host: f.Host, Severity: f.Level(), Message: f.What}
	if f.Advice != "" {
		l.Advice = []string{f.Advice}
	}
	r.write(l)
}

func (r *runLines) failure(f failure) {
	l := runLine{Type: "error", Code: f.Code, Node: f.Node, Message: f.Message, Command: f.Command, Advice: f.Advice}
	if len(f.Hosts) > 0 {
		l.Host = f.Hosts[0]
	}
	r.write(l)
}

// failed writes an error that came before the first step.
func (r *runLines) failed(err error) {
	var problems manifest.Problems
	if !errors.As(err, &problems) {
		for _, e := range flatten(err) {
			f := failureOf(e)
			var c *coded
			if errors.As(e, &c) && c.advice != "" && !slices.Contains(f.Advice, c.advice) {
				f.Advice = append(f.Advice, c.advice)
			}
			r.failure(f)
		}
		return
	}
	for _, p := range problems {
		if p.Severity != manifest.Warning {
			l := runLine{Type: "error"}
			if p.Advice != "" {
				l.Advice = []string{p.Advice}
			}
			p.Advice = ""
			l.Message = p.String()
			r.write(l)
		}
	}
}

// end writes the last line, and gives the error that ends the command.
func (r *runLines) end(ctx context.Context, s *site, err error) error {
	code := exitCode(ctx, err)
	if err != nil && !errors.Is(err, errSaid) && code != exitInterrupted {
		r.failed(err)
	}
	sum := &runSummary{Pipeline: s.pipeline.Name, DryRun: s.dryRun, ExitCode: code, Steps: s.tally, Seconds: s.took.Seconds(), Journal: s.journal, Receipt: s.receipt, Skipped: s.skipped}
	if s.cluster != nil {
		sum.Cluster = s.cluster.Metadata.Name
	}
	r.write(runLine{Type: "summary", Summary: sum})
	if err == nil {
		return r.err
	}
	return err
}

// yamlStream writes one YAML document for each value, begun by a line of dashes.
type yamlStream struct{ to io.Writer }

// Encode writes v with the names that JSON has for its fields.
func (s yamlStream) Encode(v any) error {
	text, err := yamlText(v)
	if err != nil {
		return err
	}
	_, err = s.to.Write(append([]byte("---\n"), text...))
	return err
}
