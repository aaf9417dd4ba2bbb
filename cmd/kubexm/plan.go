package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mensylisir/kubexm/cmd/kubexm/console"
	"github.com/mensylisir/kubexm/installer/pipeline"
	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/installer/site"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/refusal"
)

func (a *app) planCommand() *cobra.Command {
	var config, versions string
	var names []string
	for _, p := range pipeline.All() {
		names = append(names, p.Name)
	}
	cmd := &cobra.Command{
		Use:   "plan PIPELINE [HOST...] -f CONFIG",
		Short: "Print the plan of a pipeline: steps, hosts and order",
		Long: "Print the plan of a pipeline (" + strings.Join(names, ", ") + ") for a config: its tasks, or with -o steps each step with its artifacts and dependencies. No host is contacted.\n" +
			"HOST is a host that joins or leaves the cluster, or that the pipeline works on, as in the pipeline's own command. node-delete requires it; without it, other pipelines are planned for all hosts.\n" +
			"A config with fields that this version cannot install is refused, as install does.",
		Example:   "  kubexm plan create -f config.yaml\n  kubexm plan create -f config.yaml -o steps\n  kubexm plan node-delete w2 -f config.yaml\n  kubexm plan create -f config.yaml -o dot | dot -Tsvg > plan.svg",
		Args:      cobra.MinimumNArgs(1),
		ValidArgs: names,
		RunE: func(_ *cobra.Command, args []string) error {
			p, ok := pipeline.Named(args[0])
			if !ok {
				return &refusal.Error{Err: fmt.Errorf("pipeline %s does not exist%s", args[0], refusal.DidYouMean(args[0], names)), Kind: refusal.Usage, Advice: "use one of " + strings.Join(names, ", ")}
			}
			c, err := a.loadCluster(config, "")
			if err != nil {
				return err
			}
			if err := a.plannable(p, config, versions, c); err != nil {
				return err
			}
			if err := planTargets(p, c, args[1:]); err != nil {
				return err
			}
			g, err := plan.Build(p, pipeline.ScopeOf(p, c, args[1:]))
			if err != nil {
				return err
			}
			return a.printPlanGraph(g)
		},
	}
	cmd.Flags().StringVarP(&config, "filename", "f", "", also(useConfig, "- reads standard input"))
	_ = cmd.MarkFlagRequired("filename")
	addVersions(cmd, &versions)
	a.outputFlag(cmd, "table", "steps", "dot", "mermaid", "json")
	return cmd
}

// planTargets checks the hosts that a plan is asked for.
func planTargets(p plan.Pipeline, c *manifest.Cluster, hosts []string) error {
	usage := func(advice, format string, args ...any) error {
		return &refusal.Error{Err: fmt.Errorf(format, args...), Kind: refusal.Usage, Advice: advice}
	}
	switch {
	case len(hosts) == 0 && p.Membership == plan.RemovesHosts:
		return usage("name the hosts that leave the cluster: kubexm plan "+p.Name+" HOST [HOST...] -f CONFIG", "%s requires the host", p.Name)
	case len(hosts) > 0 && p.Args != plan.HostNames && p.Args != plan.OneHostName:
		return usage("leave out "+strings.Join(hosts, " "), "%s works on all hosts of the config", p.Name)
	case len(hosts) > 1 && p.Args == plan.OneHostName:
		return usage("name one of them", "%s works on one host, not on %d", p.Name, len(hosts))
	}
	return site.CheckTargets(p, c, hosts)
}

// plannable returns the error with which the pipeline's own command would refuse c.
func (a *app) plannable(p plan.Pipeline, path, versions string, c *manifest.Cluster) error {
	l, err := a.unpinned(versions, c)
	if err != nil {
		return err
	}
	return site.UnsupportedBy(p, c, l).In(path).Err()
}

func (a *app) printPlanGraph(g *plan.Graph) error {
	switch a.output {
	case "dot":
		_, err := fmt.Fprint(a.out, g.Dot())
		return err
	case "mermaid":
		_, err := fmt.Fprint(a.out, g.Mermaid())
		return err
	case "json", "yaml":
		return a.printValue(g.View())
	case "steps":
		_, err := fmt.Fprint(a.out, g.String())
		return err
	}
	console.PrintPlan(a.out, g, a.tableWidth(a.out))
	return nil
}
