package main

import (
	"errors"

	"github.com/mensylisir/kubexm/bundle"
	"github.com/mensylisir/kubexm/installer"
	"github.com/mensylisir/kubexm/installer/report"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/refusal"
	"github.com/mensylisir/kubexm/steps"
)

// failedView is the JSON document that a command with -o json prints when it fails.
// Later versions add fields; they do not rename or remove any.
type failedView struct {
	Errors   []errorView `json:"errors"`
	ExitCode int         `json:"exitCode"`
}

// errorView is one error of a failed command.
type errorView struct {
	// Code is the refusal's code of docs/reference/bundle-format.md; empty if it has none.
	Code    string   `json:"code,omitempty"`
	Message string   `json:"message"` // for people
	Advice  []string `json:"advice,omitempty"`
}

// failedJSON prints as JSON what report prints as text.
func (a *app) failedJSON(err error, code int) {
	v := failedView{ExitCode: code, Errors: []errorView{}}
	var hosts installer.HostErrors
	var problems manifest.Problems
	var c *refusal.Error
	switch {
	case errors.As(err, &hosts):
		for _, e := range hosts {
			v.Errors = append(v.Errors, errorView{Message: e.Error(), Advice: steps.Advice(e)})
		}
	case errors.As(err, &problems):
		for _, p := range problems {
			if p.Severity != manifest.Warning {
				x := errorView{}
				if p.Advice != "" {
					x.Advice = []string{p.Advice}
				}
				p.Advice = ""
				x.Message = p.String()
				v.Errors = append(v.Errors, x)
			}
		}
	default:
		x := errorView{Code: report.Code(err), Message: err.Error(), Advice: steps.Advice(err)}
		if errors.As(err, &c) && c.Advice != "" {
			x.Advice = append(x.Advice, c.Advice)
		}
		var unfinished *bundle.UnfinishedError
		if errors.As(err, &unfinished) {
			x.Advice = append(x.Advice, "run the same command again to continue with "+unfinished.Path)
		}
		v.Errors = append(v.Errors, x)
	}
	_ = a.printValue(v) // the command has failed anyway; the exit code reports that
}
