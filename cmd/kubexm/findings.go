package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
)

// findings gives what checks hold against hosts in an error of a run.
func findings(err error) []steps.Finding {
	var out []steps.Finding
	for _, e := range flatten(err) {
		var f steps.Findings
		if errors.As(e, &f) {
			out = append(out, f...)
		}
	}
	return out
}

// findingRow is one finding with all the hosts that have it.
type findingRow struct {
	steps.Finding
	hosts []string
}

// sortedFindings puts findings in order: errors first, then as the hosts stand
// in the config.
func sortedFindings(all []steps.Finding, c *manifest.Cluster) []steps.Finding {
	order := func(host string) int {
		return slices.IndexFunc(c.Spec.Hosts, func(h manifest.Host) bool { return h.Name == host })
	}
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b steps.Finding) int {
		return cmp.Or(cmp.Compare(severity(a), severity(b)), cmp.Compare(order(a.Host), order(b.Host)), cmp.Compare(a.Check, b.Check), cmp.Compare(a.What, b.What))
	})
	return all
}

// findingRows gives one row for what is the same on several hosts. Where it names
// the host the row says <host>.
func findingRows(all []steps.Finding, c *manifest.Cluster) []findingRow {
	var rows []findingRow
	at := map[string]int{} // by what is the same
	for _, f := range sortedFindings(all, c) {
		plain := failure{Hosts: []string{f.Host}, Message: f.What, Advice: []string{f.Advice}}.anyHost(c)
		key := func(what, advice string) string { return fmt.Sprintf("%q", []string{f.Level(), f.Check, what, advice}) }
		same, alike := key(f.What, f.Advice), key(plain.Message, plain.Advice[0])
		i, ok := at[same] // it may name hosts that are not the one that has it
		if !ok {
			if i, ok = at[alike]; ok && !slices.Contains(rows[i].hosts, f.Host) {
				rows[i].What, rows[i].Advice = plain.Message, plain.Advice[0]
			}
		}
		switch {
		case !ok:
			at[same], at[alike] = len(rows), len(rows)
			rows = append(rows, findingRow{f, []string{f.Host}})
		case !slices.Contains(rows[i].hosts, f.Host):
			rows[i].hosts = append(rows[i].hosts, f.Host)
		}
	}
	return rows
}

// tableWidth is how wide a table may be that is written to w: a log takes any width.
func (a *app) tableWidth(w io.Writer) int {
	if !isTerminal(w) {
		return 0
	}
	width, _ := a.screen.size()
	return width
}

// severity orders findings, the worst first.
func severity(f steps.Finding) int {
	return slices.Index([]string{steps.LevelError, steps.LevelWarning, steps.LevelNote}, f.Level())
}

// shortCheck is a check's name as the table has it, and as --skip takes it.
func shortCheck(name string) string { return strings.TrimPrefix(name, "preflight.") }

// printFindings writes one table over all hosts. Where width is not 0, cells
// fold to fit it.
func printFindings(w io.Writer, all []steps.Finding, c *manifest.Cluster, width int) {
	found := map[string]int{}
	var on []string
	for _, f := range all {
		found[f.Level()]++
		if f.Host != "" && !slices.Contains(on, f.Host) {
			on = append(on, f.Host)
		}
	}
	counts := count(found[steps.LevelError], "error") + ", " + count(found[steps.LevelWarning], "warning")
	if n := found[steps.LevelNote]; n > 0 {
		counts += ", " + count(n, "note")
	}
	fmt.Fprintf(w, "checks: %s on %d of %s\n", counts, len(on), count(max(len(c.Spec.Hosts), len(on)), "host")) // one may be gone from the config
	cells := [][]string{{"LEVEL", "HOST", "CHECK", "FINDING", "WHAT TO DO"}}
	for _, r := range findingRows(all, c) {
		hosts := r.hosts
		if n := len(hosts) - 3; n > 1 {
			hosts = append(slices.Clone(hosts[:3]), fmt.Sprintf("+%d more", n))
		}
		cells = append(cells, []string{r.Level(), cmp.Or(strings.Join(hosts, ", "), "-"), shortCheck(r.Check), r.What, r.Advice})
	}
	printCells(w, cells, width)
}

// printCells writes a table. Its second column and its last two fold where the
// whole is wider than width; 0 is any width.
func printCells(w io.Writer, rows [][]string, width int) {
	wide := make([]int, len(rows[0]))
	for _, r := range rows {
		for i, c := range r {
			wide[i] = max(wide[i], utf8.RuneCountInString(c))
		}
	}
	last := len(wide) - 1
	if width > 0 {
		wide[1] = min(wide[1], max(width/5, 8))
		used := 2
		for _, n := range wide[:last-1] {
			used += n + 2
		}
		room := max(width-used-2, 24)
		wide[last-1] = min(wide[last-1], max(room/2, room-wide[last]))
		wide[last] = min(wide[last], room-wide[last-1])
	}
	for _, r := range rows {
		var cells [][]string
		height := 0
		for i, c := range r {
			folded := fold(c, wide[i])
			cells, height = append(cells, folded), max(height, len(folded))
		}
		for y := range height {
			line := " "
			for i := range cells {
				text := ""
				if y < len(cells[i]) {
					text = cells[i][y]
				}
				line += " " + text + strings.Repeat(" ", max(wide[i]-utf8.RuneCountInString(text), 0)+1)
			}
			fmt.Fprintln(w, strings.TrimRight(line, " "))
		}
	}
}

// fold breaks text at spaces into lines of at most n runes; a longer word stands
// alone and whole, to be copied.
func fold(text string, n int) []string {
	lines := []string{""}
	for _, word := range strings.Fields(text) {
		l := &lines[len(lines)-1]
		switch {
		case *l == "":
			*l = word
		case utf8.RuneCountInString(*l)+1+utf8.RuneCountInString(word) <= n:
			*l += " " + word
		default:
			lines = append(lines, word)
		}
	}
	return lines
}
