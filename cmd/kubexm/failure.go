package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/installer"
	"github.com/mensylisir/kubexm/installer/engine"
	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/runner"
)

// failure is something that went wrong, in the parts that a person asks for.
type failure struct {
	Node    string // the id in the plan; empty: it happened in no step
	Hosts   []string
	Message string
	Code    string // of what is wrong with a bundle
	Command *failedCommand
	Advice  []string // each once

	later bool // it came of undoing what another failure is about
}

// failedCommand is the command on a host that a failure comes from. Secrets are
// masked in all of it.
type failedCommand struct {
	Argv   []string `json:"argv"`
	Exit   int      `json:"exit"`
	Stderr string   `json:"stderr,omitempty"` // the end of it; of what it printed at all where it complained there
}

// failures takes an error of a run apart, without its findings: in the order of
// the plan and of the hosts in the config; last what could not be undone.
func failures(err error, g *plan.Graph, c *manifest.Cluster) []failure {
	var out []failure
	for _, e := range flatten(err) {
		var findings steps.Findings
		if !errors.As(e, &findings) {
			out = append(out, failureOf(e))
		}
	}
	node := func(f failure) int {
		return slices.IndexFunc(g.Nodes, func(n *plan.Node) bool { return n.ID == f.Node })
	}
	host := func(f failure) int {
		return slices.IndexFunc(c.Spec.Hosts, func(h manifest.Host) bool { return slices.Contains(f.Hosts, h.Name) })
	}
	first := func(f failure) int {
		if f.later {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(out, func(a, b failure) int {
		return cmp.Or(first(a)-first(b), cmp.Compare(node(a), node(b)), cmp.Compare(host(a), host(b)))
	})
	return out
}

func failureOf(err error) failure {
	var f failure
	var at *steps.Error
	var unreached *installer.HostError
	switch {
	case errors.As(err, &at):
		f.Node, f.Hosts, err = at.Node, []string{at.Host}, at.Err
	case errors.As(err, &unreached):
		f.Hosts, err = []string{unreached.Host}, unreached.Err
	}
	f.Message, f.Code = err.Error(), errorCode(err)
	_, f.later = errors.AsType[*engine.UndoError](err)
	var cmd *runner.CmdError
	if errors.As(err, &cmd) && cmd.Verb == connector.VerbExec && len(cmd.Argv) > 0 {
		f.Command = &failedCommand{Argv: cmd.Argv, Exit: cmd.Exit, Stderr: cmp.Or(strings.TrimSpace(cmd.Stderr), strings.TrimSpace(cmd.Stdout))}
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

// grouped joins failures that are the same but for the host: the text then says
// <host> where it named one.
func grouped(fs []failure, c *manifest.Cluster) []failure {
	var out []failure
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
func (f failure) anyHost(c *manifest.Cluster) failure {
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
		cmd.Argv = []string{swap(commandLine(cmd.Argv))}
		cmd.Stderr = swap(cmd.Stderr)
		f.Command = &cmd
	}
	return f
}

// The most that a block shows of a command and of what it said: the journal and
// -o json have the whole.
const (
	mostCommand = 160 // runes
	mostSaid    = 8   // lines
)

// writeTo writes f as a block.
func (f failure) writeTo(w io.Writer, c *manifest.Cluster) {
	lines := strings.Split(strings.TrimRight(f.Message, "\n"), "\n")
	if f.Node == "" && len(f.Hosts) == 1 {
		lines[0] = "host " + hostList(c, f.Hosts) + ": " + lines[0]
	}
	fmt.Fprintf(w, "error: %s\n", lines[0])
	for _, l := range lines[1:min(len(lines), 1+mostSaid)] {
		fmt.Fprintf(w, "        %s\n", l)
	}
	hosts := hostList(c, f.Hosts)
	switch {
	case f.Node != "" && len(f.Hosts) > 1:
		fmt.Fprintf(w, "  step  %s\n  hosts %s\n", f.Node, hosts)
	case f.Node != "":
		fmt.Fprintf(w, "  step  %s   host  %s\n", f.Node, hosts)
	case len(f.Hosts) > 1:
		fmt.Fprintf(w, "  hosts %s\n", hosts)
	}
	if f.Command != nil {
		f.Command.writeTo(w)
	}
	for _, a := range f.Advice {
		fmt.Fprintf(w, "  try   %s\n", a)
	}
}

func (c *failedCommand) writeTo(w io.Writer) {
	argv := c.Argv[0] // of a group: quoted already
	if len(c.Argv) > 1 {
		argv = commandLine(c.Argv)
	}
	argv, _, _ = strings.Cut(argv, "\n")
	fmt.Fprintf(w, "  ran   %s   exit  %d\n", clip(argv, mostCommand), c.Exit)
	var said []string
	for l := range strings.Lines(c.Stderr) {
		if l = strings.TrimRight(l, "\r\n\t "); l != "" {
			said = append(said, l)
		}
	}
	if n := len(said) - mostSaid; n > 0 {
		said = said[n:]
	}
	for _, l := range said {
		fmt.Fprintf(w, "      | %s\n", clip(l, mostCommand))
	}
}

// commandLine is argv as a person types it.
func commandLine(argv []string) string {
	return strings.TrimPrefix(connector.Quote(append([]string{"./"}, argv...)), "./ ")
}

// mostHosts is how many hosts a line names.
const mostHosts = 10

// hostList names hosts with their addresses.
func hostList(c *manifest.Cluster, names []string) string {
	var out []string
	for _, n := range names[:min(len(names), mostHosts)] {
		for _, h := range c.Spec.Hosts {
			if h.Name == n {
				n = fmt.Sprintf("%s (%s)", n, h.Address)
				break
			}
		}
		out = append(out, n)
	}
	if n := len(names) - len(out); n > 0 {
		out = append(out, fmt.Sprintf("+%d more", n))
	}
	return strings.Join(out, ", ")
}

// flatten gives the single errors of a joined one.
func flatten(err error) []error {
	if j, ok := err.(interface{ Unwrap() []error }); ok { // the outermost join alone is taken apart
		var out []error
		for _, e := range j.Unwrap() {
			out = append(out, flatten(e)...)
		}
		return out
	}
	return []error{err}
}
