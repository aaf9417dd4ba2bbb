package console

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/installer/report"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/preflight"
)

// PrintFindings writes the findings of all hosts as one table. If width is not 0, cells
// are folded to fit it.
func PrintFindings(w io.Writer, all []steps.Finding, c *manifest.Cluster, width int) {
	found, on := report.Counts(all)
	counts := FormatCount(found[steps.LevelError], "error") + ", " + FormatCount(found[steps.LevelWarning], "warning")
	if n := found[steps.LevelNote]; n > 0 {
		counts += ", " + FormatCount(n, "note")
	}
	fmt.Fprintf(w, "checks: %s on %d of %s\n", counts, on, FormatCount(max(len(c.Spec.Hosts), on), "host")) // a host may have been removed from the config
	cells := [][]string{{"LEVEL", "HOST", "CHECK", "FINDING", "WHAT TO DO"}}
	for _, r := range report.FindingRows(all, c) {
		hosts := r.Hosts
		if n := len(hosts) - 3; n > 1 {
			hosts = append(slices.Clone(hosts[:3]), fmt.Sprintf("+%d more", n))
		}
		cells = append(cells, []string{r.Level(), cmp.Or(strings.Join(hosts, ", "), "-"), preflight.ShortName(r.Check), r.What, r.Advice})
	}
	PrintTable(w, cells, width)
}

// Limits for a command and its output in a failure block. The journal and -o json have
// the complete text.
const (
	mostCommand = 160 // runes
	mostOutput  = 8   // lines
)

// PrintFailure writes f as a block: message, step, hosts, command and advice.
func PrintFailure(w io.Writer, f report.Failure, c *manifest.Cluster) {
	lines := strings.Split(strings.TrimRight(f.Message, "\n"), "\n")
	if f.Node == "" && len(f.Hosts) == 1 {
		lines[0] = "host " + report.HostList(c, f.Hosts) + ": " + lines[0]
	}
	fmt.Fprintf(w, "error: %s\n", lines[0])
	for _, l := range lines[1:min(len(lines), 1+mostOutput)] {
		fmt.Fprintf(w, "        %s\n", l)
	}
	hosts := report.HostList(c, f.Hosts)
	switch {
	case f.Node != "" && len(f.Hosts) > 1:
		fmt.Fprintf(w, "  step  %s\n  hosts %s\n", f.Node, hosts)
	case f.Node != "":
		fmt.Fprintf(w, "  step  %s   host  %s\n", f.Node, hosts)
	case len(f.Hosts) > 1:
		fmt.Fprintf(w, "  hosts %s\n", hosts)
	}
	if f.Command != nil {
		printCommand(w, f.Command)
	}
	for _, a := range f.Advice {
		fmt.Fprintf(w, "  try   %s\n", a)
	}
}

func printCommand(w io.Writer, c *report.Command) {
	argv, _, _ := strings.Cut(c.Line(), "\n")
	fmt.Fprintf(w, "  ran   %s   exit  %d\n", Clip(argv, mostCommand), c.Exit)
	var output []string
	for l := range strings.Lines(c.Stderr) {
		if l = strings.TrimRight(l, "\r\n\t "); l != "" {
			output = append(output, l)
		}
	}
	if n := len(output) - mostOutput; n > 0 {
		output = output[n:]
	}
	for _, l := range output {
		fmt.Fprintf(w, "      | %s\n", Clip(l, mostCommand))
	}
}

// PrintDryRun writes what a dry run would change, grouped by host.
func PrintDryRun(w io.Writer, plans []report.HostPlan, c *manifest.Cluster) {
	for _, p := range plans {
		each := ""
		if len(p.Hosts) > 1 {
			each = ", each"
		}
		counts := FormatCount(p.WouldRun, "step") + " would run"
		switch {
		case p.WouldRun == 0:
			counts = "nothing to do, " + FormatCount(p.Done, "step") + " already done"
		case p.Done > 0:
			counts += fmt.Sprintf(", %d already done", p.Done)
		}
		fmt.Fprintf(w, "%s%s: %s\n%s\n", report.HostList(c, p.Hosts), each, counts, p.Text)
	}
}
