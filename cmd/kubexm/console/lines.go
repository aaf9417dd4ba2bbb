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

// Line is one line of the output with -o json of the commands that work on hosts, such
// as install, delete and reset. Each line is one JSON object; only the last one has the
// type summary. Later versions add fields and values; they do not rename or remove any.
// docs/reference/run-events.md lists them.
type Line struct {
	// Type is "step", "finding", "error" or "summary"; it determines which other fields
	// are set.
	Type string `json:"type"`
	// Time is the time of the event, RFC 3339 with fractions of a second.
	Time time.Time `json:"time"`

	// Module, Task ("module/task") and Node ("module/task/step", the id in `kubexm
	// plan`) are the position in the plan of a step, or of the step that an error is from.
	Module string `json:"module,omitempty"`
	Task   string `json:"task,omitempty"`
	Node   string `json:"node,omitempty"`
	// Step is the step's name, "kubeadm.init-control-plane".
	Step string `json:"step,omitempty"`
	// Host is the host's name in the config.
	Host string `json:"host,omitempty"`

	// Outcome of a step: "started", then one of "ran", "already done", "checked" (a
	// read-only step), "would run" (dry run), "failed", "interrupted"; between them "tried
	// again" and "waiting", after them "rolled back". The rollback of a task has "rolling
	// back" and "rolled back" for each step, and "kept" for a step that cannot be undone.
	// "resumed" is the only line of a step that was skipped and not checked.
	Outcome engine.Outcome `json:"outcome,omitempty"`
	// Seconds is how long the step took.
	Seconds float64 `json:"seconds,omitempty"`
	// Changes lists what the step would change, in a dry run.
	Changes []string `json:"changes,omitempty"`

	// Severity of a finding: "error", "warning" or "note". Findings are the results of
	// checks on hosts before anything is changed.
	Severity string `json:"severity,omitempty"`
	// Code of an error is the refusal's code of docs/reference/bundle-format.md; empty if it has
	// none.
	Code string `json:"code,omitempty"`
	// Message is the text of a finding or an error, and the error of a step that failed,
	// is tried again, or could not be rolled back. For "waiting" it is what the step waits
	// for, for "kept" the reason.
	Message string `json:"message,omitempty"`
	// Command is the command on the host that caused the error.
	Command *report.Command `json:"command,omitempty"`
	// Advice is how to correct a finding or an error.
	Advice []string `json:"advice,omitempty"`

	// Summary is the result of the command.
	Summary *Summary `json:"summary,omitempty"`
}

// Summary is the result of a run, in its last line.
type Summary struct {
	// Pipeline is the name of the pipeline, as in `kubexm plan`.
	Pipeline string `json:"pipeline,omitempty"`
	Cluster  string `json:"cluster,omitempty"`
	DryRun   bool   `json:"dryRun,omitempty"`
	// ExitCode is the command's exit code; 0 is success. docs/reference/exit-codes.md lists them.
	ExitCode int `json:"exitCode"`
	// Skipped lists the checks that were skipped.
	Skipped []string `json:"skipped,omitempty"`
	// Steps counts steps on hosts by outcome.
	Steps report.Tally `json:"steps"`
	// Seconds is the duration of the run.
	Seconds float64 `json:"seconds"`
	// Journal is the file with every event of the run; empty if no host was reached.
	Journal string `json:"journal,omitempty"`
	// Receipt is the receipt's file; empty if nothing was installed.
	Receipt string `json:"receipt,omitempty"`
}

// Lines writes lines; it is safe for concurrent use.
type Lines struct {
	mu  sync.Mutex
	enc interface{ Encode(any) error }
	err error // the first write error
}

// NewLines returns Lines that write to w; format is json or yaml.
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
		Outcome: e.Outcome, Seconds: e.Duration.Seconds(), Changes: e.Changes, Message: cmp.Or(e.Error, e.Reason),
	})
}

// Finding writes a finding of a check.
func (r *Lines) Finding(f steps.Finding) {
	l := Line{Type: "finding", Step: f.Check, Host: f.Host, Severity: f.Level(), Message: f.What}
	if f.Advice != "" {
		l.Advice = []string{f.Advice}
	}
	r.write(l)
}

// Failure writes a failure as a line of type error.
func (r *Lines) Failure(f report.Failure) {
	l := Line{Type: "error", Code: f.Code, Node: f.Node, Message: f.Message, Command: f.Command, Advice: f.Advice}
	if len(f.Hosts) > 0 {
		l.Host = f.Hosts[0]
	}
	r.write(l)
}

// Write writes any value as a line.
func (r *Lines) Write(v any) error { return r.enc.Encode(v) }

// End writes the last line, and returns the first write error.
func (r *Lines) End(sum Summary) error {
	r.write(Line{Type: "summary", Summary: &sum})
	return r.err
}

// Failed writes an error from before the first step.
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

// yamlStream writes each value as a separate YAML document.
type yamlStream struct{ to io.Writer }

// Encode writes v with the field names of JSON.
func (s yamlStream) Encode(v any) error {
	text, err := yamlText(v)
	if err != nil {
		return err
	}
	_, err = s.to.Write(append([]byte("---\n"), text...))
	return err
}
