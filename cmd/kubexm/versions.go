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
		Short: "Show the matrix of versions that go together",
		Long: `Show the matrix: every component that kubexm knows, its versions, where they
come from, and which of them go with which Kubernetes.

DIGEST says who vouches for the bytes: catalog, the matrix itself; published, a
digest that upstream publishes beside the file and that is read when the bundle
is locked; registry, the digest that an image's tag has at that time.`,
		Example: `  kubexm versions                           # every component, and its defaults
  kubexm versions --kubernetes v1.32        # what goes together
  kubexm versions containerd                # every version of one component
  kubexm versions --versions own.yaml       # with your own versions over it`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return a.showVersions(f, args) },
	}
	cmd.Flags().StringVarP(&f.kubernetes, "kubernetes", "k", "", "what goes with this Kubernetes: v1.32, or v1.32.4")
	cmd.Flags().StringVar(&f.overlay, "versions", "", "a file of kind Versions: own versions and digests, laid over the embedded matrix")
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
				Err:  fmt.Errorf("kubernetes %s is not in the matrix, which holds %s to %s", f.kubernetes, versions.Minor(minors[len(minors)-1]), minors[0]),
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

// showComponent lists the versions of one component, those alone that go with
// a Kubernetes version where one is given.
func (a *app) showComponent(c *versions.Catalog, name, kubernetes string) error {
	x, ok := c.Component(name)
	if !ok {
		return &refusal.Error{
			Err:  fmt.Errorf("%s is no component of the matrix%s", name, refusal.DidYouMean(name, c.Names())),
			Kind: refusal.Usage, Advice: "kubexm versions",
		}
	}
	rows := []versions.ReleaseRow{}
	for _, v := range c.Versions(name) {
		if kubernetes == "" || c.Together(name, v, kubernetes) {
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

// showTogether lists what goes together with one Kubernetes release.
func (a *app) showTogether(c *versions.Catalog, kubernetes string) error {
	rows := []versions.ReleaseRow{}
	for _, name := range c.ByFamily() {
		v, _ := c.Default(name, kubernetes)
		rows = append(rows, versions.NewReleaseRow(c, name, v))
	}
	if a.output != "table" {
		return a.printValue(rows)
	}
	if _, err := fmt.Fprintf(a.out, "What goes with Kubernetes %s, unless a config says otherwise:\n\n", kubernetes); err != nil {
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
