// Package report says what came of a run in the parts that a person or a program asks for:
// failures and findings with the hosts that have them, counts, what a dry run would
// change, and the tasks of a plan. It prints nothing.
package report

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/bundle"
	"github.com/mensylisir/kubexm/bundle/archive"
	"github.com/mensylisir/kubexm/bundle/sign"
	"github.com/mensylisir/kubexm/installer"
	"github.com/mensylisir/kubexm/installer/engine"
	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/refusal"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/runner"
)

// Failure is something that went wrong, in the parts that a person asks for.
type Failure struct {
	Node    string // the id in the plan; empty: it happened in no step
	Hosts   []string
	Message string
	Code    string // of what is wrong with a bundle
	Command *Command
	Advice  []string // each once

	later bool // it came of undoing what another failure is about
}

// Command is the command on a host that a failure comes from. Secrets are masked in all
// of it.
type Command struct {
	Argv   []string `json:"argv"`
	Exit   int      `json:"exit"`
	Stderr string   `json:"stderr,omitempty"` // the end of it; of what it printed at all where it complained there
}

// Line is the command as a person types it; of a group it is quoted already.
func (c *Command) Line() string {
	if len(c.Argv) == 1 {
		return c.Argv[0]
	}
	return CommandLine(c.Argv...)
}

// Failures takes an error of a run apart, without its findings: in the order of
// the plan and of the hosts in the config; last what could not be undone.
func Failures(err error, g *plan.Graph, c *manifest.Cluster) []Failure {
	var out []Failure
	_, failed := steps.Split(err)
	for _, e := range failed {
		out = append(out, FailureOf(e))
	}
	node := func(f Failure) int {
		return slices.IndexFunc(g.Nodes, func(n *plan.Node) bool { return n.ID == f.Node })
	}
	host := func(f Failure) int {
		return slices.IndexFunc(c.Spec.Hosts, func(h manifest.Host) bool { return slices.Contains(f.Hosts, h.Name) })
	}
	first := func(f Failure) int {
		if f.later {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(out, func(a, b Failure) int {
		return cmp.Or(first(a)-first(b), cmp.Compare(node(a), node(b)), cmp.Compare(host(a), host(b)))
	})
	return out
}

// FailureOf takes one error apart.
func FailureOf(err error) Failure {
	var f Failure
	var at *steps.Error
	var unreached *installer.HostError
	switch {
	case errors.As(err, &at):
		f.Node, f.Hosts, err = at.Node, []string{at.Host}, at.Err
	case errors.As(err, &unreached):
		f.Hosts, err = []string{unreached.Host}, unreached.Err
	}
	f.Message, f.Code = err.Error(), Code(err)
	_, f.later = errors.AsType[*engine.UndoError](err)
	var cmd *runner.CmdError
	if errors.As(err, &cmd) && cmd.Verb == connector.VerbExec && len(cmd.Argv) > 0 {
		f.Command = &Command{Argv: cmd.Argv, Exit: cmd.Exit, Stderr: cmp.Or(strings.TrimSpace(cmd.Stderr), strings.TrimSpace(cmd.Stdout))}
		// What it said follows in lines of its own.
		f.Message = strings.Replace(f.Message, cmd.Error(), (&runner.CmdError{Verb: cmd.Verb, Argv: cmd.Argv, Exit: cmd.Exit}).Error(), 1)
	}
	for _, a := range steps.Advice(err) {
		if a != "" && !slices.Contains(f.Advice, a) {
			f.Advice = append(f.Advice, a)
		}
	}
	return f
}

// Code gives the word that says what is wrong with a bundle, a signature or a
// key, the same in every version; "" where nothing is, or something else.
func Code(err error) string {
	if code, ok := errors.AsType[bundle.TrustCode](err); ok {
		return string(code)
	}
	if code, ok := errors.AsType[archive.Code](err); ok {
		return string(code)
	}
	if code, ok := errors.AsType[sign.Code](err); ok {
		return string(code)
	}
	if r, ok := errors.AsType[*refusal.Error](err); ok {
		return r.Word
	}
	return ""
}

// Grouped joins failures that are the same but for the host: the text then says
// <host> where it named one.
func Grouped(fs []Failure, c *manifest.Cluster) []Failure {
	var out []Failure
	at := map[string]int{} // by what is the same
	for _, f := range fs {
		plain := f.anyHost(c)
		key := fmt.Sprintf("%q %q %q %+v", plain.Node, plain.Message, plain.Advice, plain.Command)
		i, ok := at[key]
		switch {
		case !ok:
			at[key] = len(out)
			out = append(out, f)
		case len(out[i].Hosts) == 1: // the second of its kind
			plain.Hosts = append(slices.Clone(out[i].Hosts), f.Hosts...)
			out[i] = plain
		default:
			out[i].Hosts = append(out[i].Hosts, f.Hosts...)
		}
	}
	return out
}

// anyHost is f without the name and the address of its host.
func (f Failure) anyHost(c *manifest.Cluster) Failure {
	swap := func(s string) string { return s }
	for _, h := range c.Spec.Hosts {
		if slices.Contains(f.Hosts, h.Name) && len(h.Name) > 1 {
			names := regexp.MustCompile(`(^|[^\w.-])(` + regexp.QuoteMeta(h.Name) + `|` + regexp.QuoteMeta(h.Address) + `)($|[^\w-])`)
			swap = func(s string) string {
				for range 2 { // neighbours share the byte between them
					s = names.ReplaceAllString(s, "${1}<host>${3}")
				}
				return s
			}
		}
	}
	f.Message = swap(f.Message)
	advice := f.Advice
	f.Advice = nil
	for _, a := range advice {
		f.Advice = append(f.Advice, swap(a))
	}
	if f.Command != nil {
		cmd := *f.Command
		cmd.Argv = []string{swap(CommandLine(cmd.Argv...))}
		cmd.Stderr = swap(cmd.Stderr)
		f.Command = &cmd
	}
	return f
}

// CommandLine is argv as a person types it behind a command's name.
func CommandLine(argv ...string) string {
	const command = "./" // the first word stands for itself where it has a slash
	return strings.TrimPrefix(connector.Quote(append([]string{command}, argv...)), command+" ")
}

// mostHosts is how many hosts a line names.
const mostHosts = 10

// HostList names hosts with their addresses.
func HostList(c *manifest.Cluster, names []string) string {
	var out []string
	for _, n := range names[:min(len(names), mostHosts)] {
		if h, ok := c.Host(n); ok {
			n = fmt.Sprintf("%s (%s)", n, h.Address)
		}
		out = append(out, n)
	}
	if n := len(names) - len(out); n > 0 {
		out = append(out, fmt.Sprintf("+%d more", n))
	}
	return strings.Join(out, ", ")
}
