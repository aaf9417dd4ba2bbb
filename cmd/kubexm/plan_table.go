package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/steps"
)

// planTable gives one row for each task of a plan, in the order in which they begin.
func planTable(g *plan.Graph) [][]string {
	rows := [][]string{{"TASK", "HOSTS", "STEPS", "NEEDS", "RISK"}}
	type task struct {
		hosts, needs []string
		steps        int
		risk         steps.Risk
	}
	all := map[string]*task{}
	var order []string
	for _, n := range g.Nodes {
		t := all[n.Task]
		if t == nil {
			t = &task{}
			all[n.Task] = t
			order = append(order, n.Task)
		}
		m := n.Step.Meta()
		t.steps++
		t.risk = max(t.risk, m.Risk)
		for _, h := range n.Hosts {
			if !slices.Contains(t.hosts, h.Name) {
				t.hosts = append(t.hosts, h.Name)
			}
		}
		for _, need := range m.Needs {
			if s := string(need.Kind) + " " + need.Name; !slices.Contains(t.needs, s) {
				t.needs = append(t.needs, s)
			}
		}
	}
	for _, name := range order {
		t := all[name]
		hosts := strings.Join(t.hosts, ", ")
		if len(t.hosts) > 3 {
			hosts = fmt.Sprintf("%s, +%d more", strings.Join(t.hosts[:2], ", "), len(t.hosts)-2)
		}
		needs := "-"
		if len(t.needs) > 0 {
			needs = count(len(t.needs), "artifact")
		}
		rows = append(rows, []string{name, hosts, fmt.Sprint(t.steps), needs, t.risk.String()})
	}
	return rows
}

// printTable writes rows as columns.
func (a *app) printPlanTable(g *plan.Graph) error {
	fmt.Fprintf(a.out, "%s: %s in %s\n", g.Name, count(len(g.Nodes), "step"), count(len(planTable(g))-1, "task"))
	printCells(a.out, planTable(g), a.tableWidth(a.out))
	return nil
}
