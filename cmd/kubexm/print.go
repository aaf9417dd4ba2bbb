package main

import (
	"bytes"
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

// printLine writes v as printValue does, JSON on one line: of commands that go on.
func (a *app) printLine(v any) error {
	a.printed = true
	return newRunLines(a.out, a.output).enc.Encode(v)
}

// printYAML writes v with the names that printJSON gives its fields.
func (a *app) printYAML(v any) error {
	a.printed = true
	text, err := yamlText(v)
	if err != nil {
		return err
	}
	_, err = a.out.Write(text)
	return err
}

// mostInRow is how long a list is that stands on one line of YAML.
const mostInRow = 60

func yamlText(v any) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	var node yaml.Node // JSON is YAML, and a node keeps its order
	if err := yaml.Unmarshal(text, &node); err != nil {
		return nil, err
	}
	blockStyle(&node)
	var out bytes.Buffer
	e := yaml.NewEncoder(&out)
	e.SetIndent(2)
	if err := errors.Join(e.Encode(&node), e.Close()); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// blockStyle takes JSON's brackets and quotes from a document, except from what is
// empty and from short lists of words.
func blockStyle(n *yaml.Node) {
	words := 0
	for _, c := range n.Content {
		words += len(c.Value) + 2
		if c.Kind != yaml.ScalarNode {
			words = mostInRow
		}
	}
	if n.Kind != yaml.SequenceNode || words >= mostInRow {
		n.Style = 0
	}
	if n.Kind == yaml.MappingNode && len(n.Content) == 0 {
		n.Style = yaml.FlowStyle
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
	return &coded{error: fmt.Errorf("%s already exists", path), code: exitUsage, advice: "--force replaces it"}
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
