package console

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/mensylisir/kubexm/installer/engine"
	"github.com/mensylisir/kubexm/installer/report"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/refusal"
	"github.com/mensylisir/kubexm/steps"
)

// Line is one line of -o json of the commands that work on hosts: install,
// create, delete and reset. Each line is one JSON object; the last one, and only
// that, is of the type summary. Fields and words are added in later versions, and
// neither renamed nor taken away; docs/run-events.md lists them.
type Line struct {
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
	Command *report.Command `json:"command,omitempty"`
	// Advice is what can be done about a finding or an error.
	Advice []string `json:"advice,omitempty"`

	// Summary is how the whole command ended.
	Summary *Summary `json:"summary,omitempty"`
}

// Summary ends the lines of a run.
type Summary struct {
	// Pipeline is what was asked for, by the name that `kubexm plan` takes.
	Pipeline string `json:"pipeline,omitempty"`
	Cluster  string `json:"cluster,omitempty"`
	DryRun   bool   `json:"dryRun,omitempty"`
	// ExitCode is the command's; 0 is success. docs/exit-codes.md lists them.
	ExitCode int `json:"exitCode"`
	// Skipped are the checks that were left out.
	Skipped []string `json:"skipped,omitempty"`
	// Steps counts steps on hosts by how they ended.
	Steps report.Tally `json:"steps"`
	// Seconds is how long the run took.
	Seconds float64 `json:"seconds"`
	// Journal is the file with every event of the run; empty where no host was reached.
	Journal string `json:"journal,omitempty"`
	// Receipt is the file that says what was installed; empty where nothing was.
	Receipt string `json:"receipt,omitempty"`
}

// Lines writes them, one at a time.
type Lines struct {
	mu  sync.Mutex
	enc interface{ Encode(any) error }
	err error // the first that writing met
}

// NewLines writes to w, in a format that is json or yaml.
func NewLines(w io.Writer, format string) *Lines {
	if format == "yaml" {
		return &Lines{enc: yamlStream{w}}
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return &Lines{enc: e}
}

func (r *Lines) write(l Line) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if l.Time.IsZero() {
		l.Time = time.Now()
	}
	if err := r.enc.Encode(l); r.err == nil {
		r.err = err
	}
}

// Event writes one event of the engine.
func (r *Lines) Event(e engine.Event) {
	r.write(Line{
		Type: "step", Time: e.Time, Module: e.Module, Task: e.Task, Node: e.Node, Step: e.Step, Host: e.Host,
		Outcome: e.Outcome, Seconds: e.Took.Seconds(), Changes: e.Changes, Message: cmp.Or(e.Error, e.For),
	})
}

// Finding writes what a check found.
func (r *Lines) Finding(f steps.Finding) {
	l := Line{Type: "finding", Step: f.Check, Host: f.Host, Severity: f.Level(), Message: f.What}
	if f.Advice != "" {
		l.Advice = []string{f.Advice}
	}
	r.write(l)
}

// Failure writes what went wrong.
func (r *Lines) Failure(f report.Failure) {
	l := Line{Type: "error", Code: f.Code, Node: f.Node, Message: f.Message, Command: f.Command, Advice: f.Advice}
	if len(f.Hosts) > 0 {
		l.Host = f.Hosts[0]
	}
	r.write(l)
}

// Write writes a value of the caller's own.
func (r *Lines) Write(v any) error { return r.enc.Encode(v) }

// End writes the last line, and gives the first error that writing met.
func (r *Lines) End(sum Summary) error {
	r.write(Line{Type: "summary", Summary: &sum})
	return r.err
}

// Failed writes an error that came before the first step.
func (r *Lines) Failed(err error) {
	var problems manifest.Problems
	if !errors.As(err, &problems) {
		for _, e := range steps.Each(err) {
			f := report.FailureOf(e)
			var c *refusal.Error
			if errors.As(e, &c) && c.Advice != "" && !slices.Contains(f.Advice, c.Advice) {
				f.Advice = append(f.Advice, c.Advice)
			}
			r.Failure(f)
		}
		return
	}
	for _, p := range problems {
		if p.Severity != manifest.Warning {
			l := Line{Type: "error"}
			if p.Advice != "" {
				l.Advice = []string{p.Advice}
			}
			p.Advice = ""
			l.Message = p.String()
			r.write(l)
		}
	}
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
