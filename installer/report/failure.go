// Package report structures the results of a run for people and programs: failures and
// findings with their hosts, counts, the changes of a dry run, and the tasks of a plan. It
// prints nothing.
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

// Failure is an error of a run in its parts.
type Failure struct {
	Node    string // the id in the plan; empty if it happened in no step
	Hosts   []string
	Message string
	Code    string // code of an error about a bundle
	Command *Command
	Advice  []string // without duplicates

	later bool // an error of undoing another failed step
}

// Command is the command on a host that caused a failure. Secrets are masked in all fields.
type Command struct {
	Argv   []string `json:"argv"`
	Exit   int      `json:"exit"`
	Stderr string   `json:"stderr,omitempty"` // the end of standard error, or of standard output if that is empty
}

// Line returns the command as typed in a shell; the command of a group is already quoted.
func (c *Command) Line() string {
	if len(c.Argv) == 1 {
		return c.Argv[0]
	}
	return CommandLine(c.Argv...)
}

// Failures splits an error of a run into failures, without its findings, in the order of the
// plan and of the hosts in the config. Rollback errors come last.
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

// FailureOf splits one error into its parts.
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
		// The output of the command is printed on separate lines.
		f.Message = strings.Replace(f.Message, cmd.Error(), (&runner.CmdError{Verb: cmd.Verb, Argv: cmd.Argv, Exit: cmd.Exit}).Error(), 1)
	}
	for _, a := range steps.Advice(err) {
		if a != "" && !slices.Contains(f.Advice, a) {
			f.Advice = append(f.Advice, a)
		}
	}
	return f
}

// Code returns the code of an error about a bundle, a signature or a key, the same in every
// version; "" for other errors.
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
		return r.Code
	}
	return ""
}

// Grouped joins failures that differ only in the host: the host's name is replaced by <host>
// in the text.
func Grouped(fs []Failure, c *manifest.Cluster) []Failure {
	var out []Failure
	at := map[string]int{} // by the text without hosts
	for _, f := range fs {
		plain := f.anyHost(c)
		key := fmt.Sprintf("%q %q %q %+v", plain.Node, plain.Message, plain.Advice, plain.Command)
		i, ok := at[key]
		switch {
		case !ok:
			at[key] = len(out)
			out = append(out, f)
		case len(out[i].Hosts) == 1: // the second with the same text
			plain.Hosts = append(slices.Clone(out[i].Hosts), f.Hosts...)
			out[i] = plain
		default:
			out[i].Hosts = append(out[i].Hosts, f.Hosts...)
		}
	}
	return out
}

// anyHost returns f without the name and the address of its host.
func (f Failure) anyHost(c *manifest.Cluster) Failure {
	swap := func(s string) string { return s }
	for _, h := range c.Spec.Hosts {
		if slices.Contains(f.Hosts, h.Name) && len(h.Name) > 1 {
			names := regexp.MustCompile(`(^|[^\w.-])(` + regexp.QuoteMeta(h.Name) + `|` + regexp.QuoteMeta(h.Address) + `)($|[^\w-])`)
			swap = func(s string) string {
				for range 2 { // adjacent matches share the byte between them
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

// CommandLine returns argv as typed in a shell after a command's name.
func CommandLine(argv ...string) string {
	const command = "./" // a first word with a slash is not looked up in PATH
	return strings.TrimPrefix(connector.Quote(append([]string{command}, argv...)), command+" ")
}

// mostHosts is the maximum number of hosts listed in a line.
const mostHosts = 10

// HostList returns hosts with their addresses.
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
