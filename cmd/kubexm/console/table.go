package console

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/installer/report"
)

// PrintTable writes a table. If the table is wider than width, its second column and its
// last two are folded; 0 means unlimited.
func PrintTable(w io.Writer, rows [][]string, width int) {
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
			folded := Fold(c, wide[i])
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

// Fold breaks text at spaces into lines of at most n runes. A longer word is a line by
// itself, so that it can be copied.
func Fold(text string, n int) []string {
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

// PrintPlan writes one row for each task of a plan, in the order in which they start.
func PrintPlan(w io.Writer, g *plan.Graph, width int) {
	rows := [][]string{{"TASK", "HOSTS", "STEPS", "NEEDS", "RISK"}}
	tasks := report.Tasks(g)
	for _, t := range tasks {
		hosts := strings.Join(t.Hosts, ", ")
		if len(t.Hosts) > 3 {
			hosts = fmt.Sprintf("%s, +%d more", strings.Join(t.Hosts[:2], ", "), len(t.Hosts)-2)
		}
		needs := "-"
		if len(t.Needs) > 0 {
			needs = FormatCount(len(t.Needs), "artifact")
		}
		rows = append(rows, []string{t.Name, hosts, fmt.Sprint(t.Steps), needs, t.Risk.String()})
	}
	fmt.Fprintf(w, "%s: %s in %s\n", g.Name, FormatCount(len(g.Nodes), "step"), FormatCount(len(tasks), "task"))
	PrintTable(w, rows, width)
}

// FormatCount formats a count: "1 warning", "2 warnings".
func FormatCount(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
