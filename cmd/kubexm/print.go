package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"

	"github.com/agnivade/levenshtein"
	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/mensylisir/kubexm/manifest"
)

// printJSON writes v as every command with -o json does.
func (a *app) printJSON(v any) error {
	a.printed = true
	e := json.NewEncoder(a.out)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// printYAML writes v with the names that printJSON gives its fields.
func (a *app) printYAML(v any) error {
	a.printed = true
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	var node yaml.Node // JSON is YAML, and a node keeps its order
	if err := yaml.Unmarshal(text, &node); err != nil {
		return err
	}
	blockStyle(&node)
	e := yaml.NewEncoder(a.out)
	e.SetIndent(2)
	return errors.Join(e.Encode(&node), e.Close())
}

// blockStyle takes JSON's brackets and quotes from a document, except where what is
// empty needs them.
func blockStyle(n *yaml.Node) {
	if len(n.Content) > 0 || n.Kind == yaml.ScalarNode {
		n.Style = 0
	}
	for _, c := range n.Content {
		blockStyle(c)
	}
}

// printValue writes v in the format of -o, json or yaml.
func (a *app) printValue(v any) error {
	if a.output == "yaml" {
		return a.printYAML(v)
	}
	return a.printJSON(v)
}

// printWarnings says what was found but does not stop the command.
func (a *app) printWarnings(ps manifest.Problems) {
	for _, p := range ps {
		if p.Severity == manifest.Warning {
			fmt.Fprintln(a.err, p.String())
		}
	}
}

// refuseExisting keeps a command from replacing an archive unasked.
func refuseExisting(path string, force bool) error {
	_, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) || (err == nil && force):
		return nil
	case err != nil:
		return err
	}
	return &coded{error: fmt.Errorf("%s stands already", path), code: exitUsage, advice: "--force replaces it"}
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// didYouMean names the closest of names, if one is close.
func didYouMean(word string, names []string) string {
	best, distance := "", len(word)/2+1
	for _, n := range names {
		if d := levenshtein.ComputeDistance(word, n); d < distance {
			best, distance = n, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %s?", best)
}

// completeArchives makes the shell offer archives for the first argument.
func completeArchives(cmd *cobra.Command) {
	cmd.ValidArgsFunction = func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return []string{"tar.zst", "001"}, cobra.ShellCompDirectiveFilterFileExt
	}
}
