package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/mensylisir/kubexm/cmd/kubexm/console"
	"github.com/mensylisir/kubexm/installer/pipeline"
	"github.com/mensylisir/kubexm/installer/site"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/refusal"
	"github.com/mensylisir/kubexm/manifest/schema"
)

func (a *app) configCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Write, check and explain cluster configs",
		Example: `  kubexm config init --out config.yaml     # a commented config to start from
  kubexm config validate -f config.yaml    # every problem, with line and advice
  kubexm config explain spec.etcd          # what a field means`,
		Args: cobra.NoArgs,
	}
	cmd.AddCommand(a.configInit(), a.configValidate(), a.configSchema(), a.configExplain())
	return cmd
}

func (a *app) configValidate() *cobra.Command {
	file, overlay := "", ""
	cmd := &cobra.Command{
		Use:   "validate -f FILE",
		Short: "Report every problem of a config, with line and advice",
		Long: `Read a cluster config, or a document of sources, and report every problem of it
at once, each with line, column, field and advice.

Errors mean that the config cannot be used; the exit code is 2 then. Warnings
are said and passed: something may not be meant, or a field is accepted that
nothing acts on yet. The last line tells whether this version can install what the
config asks for, and names the fields that it cannot: plan, preflight, install and
bundle check refuse those alike, and bundle build wants --build-only. Only the document is looked at, and the charts that lie beside
it: whether they take the values of their add-ons. What is fetched, "kubexm bundle
lock" looks at; which versions exist is a matter of "kubexm versions".`,
		Example: `  kubexm config validate -f config.yaml
  kubexm config validate -f - < config.yaml
  kubexm config validate -f config.yaml -o json`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return a.validate(file, overlay) },
	}
	cmd.Flags().StringVarP(&file, "filename", "f", "", also(useConfig, "or a document of sources; - reads standard input"))
	renamed(cmd, "file", "filename")
	_ = cmd.MarkFlagRequired("filename")
	_ = cmd.MarkFlagFilename("filename", "yaml", "yml")
	addVersions(cmd, &overlay)
	a.outputFlag(cmd, "text", "json")
	return cmd
}

func (a *app) validate(path, overlay string) error {
	c, problems, err := a.problemsOf(path)
	if err != nil {
		return err
	}
	failed := problems.Err()
	var not manifest.Problems
	if failed == nil && c != nil {
		l, err := a.unpinned(overlay, c)
		if err != nil {
			return err
		}
		not = site.RefusedBy(pipeline.Create(), c, l).In(path)
		more, err := a.advised(c, l)
		if err != nil {
			return err
		}
		problems = append(problems, append(site.AsWarnings(not, problems), more...).In(path)...)
	}
	if a.structured() {
		if problems == nil {
			problems = manifest.Problems{}
		}
		if err := a.printValue(validated{path, failed == nil, failed == nil && c != nil && not == nil, problems, not}); err != nil {
			return err
		}
		if failed != nil {
			return &refusal.Error{Err: errSaid, Kind: refusal.Usage}
		}
		return nil
	}
	if failed != nil {
		return failed
	}
	a.printWarnings(problems)
	fmt.Fprintf(a.out, "%s: ok, %s\n", path, console.Count(len(problems), "warning"))
	if c != nil {
		fmt.Fprintln(a.out, site.NotInstalled(not))
	}
	return nil
}

// advised gives what a config that can be used is warned of beside what it says
// wrong: l is what it resolves to, nil where it does not.
func (a *app) advised(c *manifest.Cluster, l *manifest.Lock) (manifest.Problems, error) {
	if err := a.zone(&c.Spec.Sources); err != nil {
		return nil, err
	}
	ps := c.PackageAdvice()
	if l != nil {
		ps = append(ps, c.Spec.Sources.Unmirrored(l)...)
	}
	return ps, nil
}

// validated is what validate says with -o json.
type validated struct {
	File           string            `json:"file"`
	OK             bool              `json:"ok"`
	Installable    bool              `json:"installable"`
	Problems       manifest.Problems `json:"problems"`
	NotInstallable manifest.Problems `json:"notInstallable,omitempty"`
}

func (a *app) configSchema() *cobra.Command {
	kind := manifest.ClusterKind
	cmd := &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of a config, for editors and other programs",
		Long: `Print the JSON Schema (draft 2020-12) of a cluster config, or of a document of
sources. An editor that knows it completes fields and shows what they mean.

It says which fields there are, of which type, with which words and ranges.
What holds between fields, "kubexm config validate" checks.`,
		Example: `  kubexm config schema > cluster.schema.json
  # then, as the first line of the config, for editors:
  # yaml-language-server: $schema=cluster.schema.json`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if kind == manifest.SourcesKind {
				return a.printJSON(schema.Sources())
			}
			return a.printJSON(schema.Cluster())
		},
	}
	kinds := []string{manifest.ClusterKind, manifest.SourcesKind}
	choose := &choice{value: &kind, allowed: kinds, name: "kind"}
	cmd.Flags().Var(choose, "kind", "the kind of document: "+choose.list())
	_ = cmd.RegisterFlagCompletionFunc("kind", cobra.FixedCompletions(kinds, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}
