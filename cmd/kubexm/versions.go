package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/mensylisir/kubexm/manifest/refusal"
	"github.com/mensylisir/kubexm/versions"
)

// versionsFlags are the flags of `kubexm versions`.
type versionsFlags struct {
	kubernetes, overlay string
}

func (a *app) versionsCommand() *cobra.Command {
	var f versionsFlags
	cmd := &cobra.Command{
		Use:   "versions [COMPONENT]",
		Short: "Show the matrix of supported versions",
		Long: `Show the version matrix: every component that kubexm supports, its versions, their sources, and the
Kubernetes versions that each is compatible with.

DIGEST is the source of a digest: catalog, the matrix itself; published, a digest that upstream
publishes beside the file and that is read when the config is locked; registry, the digest that the
image's tag has at that time.`,
		Example: `  kubexm versions                           # all components and defaults
  kubexm versions --kubernetes v1.32        # compatible with v1.32
  kubexm versions containerd                # all versions of one component
  kubexm versions --versions own.yaml       # with your own versions`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return a.showVersions(f, args) },
	}
	cmd.Flags().StringVarP(&f.kubernetes, "kubernetes", "k", "", "only versions compatible with this Kubernetes: v1.32, or v1.32.4")
	cmd.Flags().StringVar(&f.overlay, "versions", "", useVersions)
	a.outputFlag(cmd, "table", "json", "yaml")
	cmd.ValidArgsFunction = func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		c, problems := versions.Load()
		if len(args) > 0 || problems.Err() != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return c.Names(), cobra.ShellCompDirectiveNoFileComp
	}
	return cmd
}

func (a *app) showVersions(f versionsFlags, args []string) error {
	c, err := a.loadCatalog(f.overlay)
	if err != nil {
		return err
	}
	kubernetes := ""
	if f.kubernetes != "" {
		known := false
		if kubernetes, known = c.KubernetesRelease(f.kubernetes); !known {
			minors := c.Minors()
			return &refusal.Error{
				Err:  fmt.Errorf("kubernetes %s is not in the matrix, which has %s to %s", f.kubernetes, versions.Minor(minors[len(minors)-1]), minors[0]),
				Kind: refusal.Usage, Advice: "kubexm versions kubernetes",
			}
		}
	}
	switch {
	case len(args) == 1:
		return a.showComponent(c, args[0], kubernetes)
	case kubernetes != "":
		return a.showTogether(c, kubernetes)
	default:
		return a.showMatrix(c)
	}
}

// showComponent lists the versions of one component; if kubernetes is not empty, only
// those compatible with it.
func (a *app) showComponent(c *versions.Catalog, name, kubernetes string) error {
	x, ok := c.Component(name)
	if !ok {
		return &refusal.Error{
			Err:  fmt.Errorf("%s is not a component of the matrix%s", name, refusal.DidYouMean(name, c.Names())),
			Kind: refusal.Usage, Advice: "kubexm versions",
		}
	}
	rows := []versions.ReleaseRow{}
	for _, v := range c.Versions(name) {
		if kubernetes == "" || c.Compatible(name, v, kubernetes) {
			rows = append(rows, versions.NewReleaseRow(c, name, v))
		}
	}
	if len(rows) == 0 {
		rows = append(rows, versions.NewReleaseRow(c, name, ""))
	}
	if a.output != "table" {
		return a.printValue(rows)
	}
	if _, err := fmt.Fprintf(a.out, "%s: %s\n\n", name, x.About); err != nil {
		return err
	}
	return a.printReleases(rows, false)
}

// showTogether lists the default versions for one Kubernetes release.
func (a *app) showTogether(c *versions.Catalog, kubernetes string) error {
	rows := []versions.ReleaseRow{}
	for _, name := range c.ByFamily() {
		v, _ := c.Default(name, kubernetes)
		rows = append(rows, versions.NewReleaseRow(c, name, v))
	}
	if a.output != "table" {
		return a.printValue(rows)
	}
	if _, err := fmt.Fprintf(a.out, "Default versions for Kubernetes %s:\n\n", kubernetes); err != nil {
		return err
	}
	return a.printReleases(rows, true)
}

// showMatrix lists every component with its defaults for the newest minors.
func (a *app) showMatrix(c *versions.Catalog) error {
	minors := c.Minors()
	minors = minors[:min(shownMinors, len(minors))]
	rows := []versions.MatrixRow{}
	for _, name := range c.ByFamily() {
		rows = append(rows, versions.NewMatrixRow(c, name, minors))
	}
	if a.output != "table" {
		return a.printValue(rows)
	}
	return a.printMatrix(rows, minors)
}
