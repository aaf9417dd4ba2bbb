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
		Short: "Create, validate and explain cluster configs",
		Example: `  kubexm config init --out config.yaml     # write a commented example
  kubexm config validate -f config.yaml    # list all errors and warnings
  kubexm config explain spec.etcd          # describe a field`,
		Args: cobra.NoArgs,
	}
	cmd.AddCommand(a.configInit(), a.configValidate(), a.configSchema(), a.configExplain())
	return cmd
}

func (a *app) configValidate() *cobra.Command {
	file, overlay := "", ""
	cmd := &cobra.Command{
		Use:   "validate -f FILE",
		Short: "Report every error and warning of a config, with line and advice",
		Long: `Read a cluster config, or a document of kind Sources, and report all its errors and warnings with
line, column, field and advice.

With errors the config cannot be used, and the exit code is 2. Warnings do not stop the command: a
value may be unintended, or a field is accepted but has no effect yet.

The last line states whether this version can install the config, and lists the fields that it
cannot install. plan, preflight, install and bundle check refuse such fields, and bundle build
requires --build-only.

Only the document and local charts are read; charts are checked against the values of their
add-ons. "kubexm bundle lock" checks what is downloaded; "kubexm versions" lists the versions.`,
		Example: `  kubexm config validate -f config.yaml
  kubexm config validate -f - < config.yaml
  kubexm config validate -f config.yaml -o json`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return a.validate(file, overlay) },
	}
	cmd.Flags().StringVarP(&file, "filename", "f", "", also(useConfig, "or a document of kind Sources; - reads standard input"))
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
		not = site.UnsupportedBy(pipeline.Create(), c, l).In(path)
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
			return &refusal.Error{Err: errReported, Kind: refusal.Usage}
		}
		return nil
	}
	if failed != nil {
		return failed
	}
	a.printWarnings(problems)
	fmt.Fprintf(a.out, "%s: ok, %s\n", path, console.FormatCount(len(problems), "warning"))
	if c != nil {
		fmt.Fprintln(a.out, site.NotInstalled(not))
	}
	return nil
}

// advised returns further warnings about a valid config. l is the lock that the config
// resolves to; nil if it does not resolve.
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

// validated is the output of validate with -o json.
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
		Long: `Print the JSON Schema (draft 2020-12) of a cluster config, or of a document of kind Sources.
Editors use it to complete fields and to show their descriptions.

The schema contains fields, types, enumerations and ranges. Rules between fields are only checked
by "kubexm config validate".`,
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
