package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/refusal"
)

func (a *app) configExplain() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "explain [FIELD]",
		Short: "Describe a field of the config, its type and its values",
		Long: `Describe a field of the cluster config: meaning, type, default, allowed values and aliases. For a
mapping, its fields are listed; without an argument, those of the complete config.`,
		Example: `  kubexm config explain
  kubexm config explain spec.etcd
  kubexm config explain spec.hosts.internalAddress
  kubexm config explain spec.kubernetes.containerRuntime   # an alias`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			path := ""
			if len(args) > 0 {
				path = strings.TrimSuffix(args[0], ".")
			}
			return a.explain(path)
		},
		ValidArgsFunction: completeFields,
	}
	a.outputFlag(cmd, "text", "json")
	return cmd
}

// completeFields completes the fields of the mapping that is being typed.
func completeFields(_ *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	parent, ok := manifest.ConfigFields().Find(typed[:max(strings.LastIndexByte(typed, '.'), 0)])
	if !ok {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var out []string
	directive := cobra.ShellCompDirectiveNoFileComp
	for _, f := range parent.Fields {
		if strings.HasPrefix(f.Path, typed) {
			out = append(out, f.Path+"\t"+f.Summary())
		}
	}
	if len(out) > 0 {
		directive |= cobra.ShellCompDirectiveNoSpace // a mapping's fields may follow
	}
	return out, directive
}

func (a *app) explain(path string) error {
	f, alias, ok := manifest.FindField(path)
	if !ok {
		return &refusal.Error{Err: fmt.Errorf("%s is not a field of the config%s", path, nearField(path)), Kind: refusal.Usage, Advice: "kubexm config explain"}
	}
	e := manifest.Explain(f)
	if a.structured() {
		return a.printValue(e)
	}
	if alias != "" {
		if _, err := fmt.Fprintf(a.out, "%s is an alias of %s.\n\n", alias, f.Path); err != nil {
			return err
		}
	}
	_, err := fmt.Fprint(a.out, explanationText(e))
	return err
}

// nearField suggests fields for an unknown one: those with the same last name first.
func nearField(path string) string {
	same, all := manifest.FieldsNamed(path)
	if len(same) > 0 {
		return "; did you mean " + strings.Join(same[:min(len(same), 3)], " or ") + "?"
	}
	return refusal.DidYouMean(path, all)
}

// explanationText formats an explanation for a terminal.
func explanationText(e manifest.Explanation) string {
	var b strings.Builder
	if e.Field != "" {
		b.WriteString(e.Field + "\n\n")
	}
	b.WriteString(wrap(e.Meaning, "  "))
	if e.Field != "" {
		b.WriteString("\n")
	}
	row := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "  %-14s%s\n", name, strings.TrimSpace(wrap(value, strings.Repeat(" ", 16))))
		}
	}
	if e.Field != "" {
		row("type", e.Type)
	}
	if e.Required && len(e.Fields) == 0 {
		row("required", "yes")
	}
	row("default", e.Default)
	row("values", e.Allowed)
	row("aliases", strings.Join(e.AlsoWritten, "; "))
	row("to change", e.Change)
	row("install", e.Install)
	row("no effect yet", e.NotYetBuilt)
	if len(e.Fields) == 0 {
		return b.String()
	}
	b.WriteString("\n  Fields\n")
	width := 0
	for _, f := range e.Fields {
		width = max(width, len(f.Name))
	}
	for _, f := range e.Fields {
		indent := strings.Repeat(" ", width+6)
		fmt.Fprintf(&b, "    %-*s  %s", width, f.Name, strings.TrimLeft(wrap(f.Summary, indent), " "))
	}
	return b.String()
}

// lineWidth is the assumed width of a terminal.
const lineWidth = 80

// wrap folds text into lines of at most lineWidth that begin with indent.
func wrap(text, indent string) string {
	var b strings.Builder
	line := indent
	for _, word := range strings.Fields(text) {
		if line != indent && len([]rune(line))+1+len([]rune(word)) > lineWidth {
			b.WriteString(line + "\n")
			line = indent
		}
		if line != indent {
			line += " "
		}
		line += word
	}
	return b.String() + line + "\n"
}
