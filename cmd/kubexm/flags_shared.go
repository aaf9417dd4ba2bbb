package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// What a flag that several commands have does, in the words of all of them: a flag
// means one thing over the whole tree. Behind the semicolon may come what a command
// adds.
const (
	useConfig   = "the cluster config"
	useBundle   = "the bundle: NAME.tar.zst, or the first of its volumes"
	useWorkdir  = "where the folder .kubexm lies"
	useForce    = "replace what exists already"
	useDryRun   = "change nothing, and print what would be done"
	useParallel = "how many at once: " // what
	useSignKey  = "the private key to sign with (cosign.key)"
	useCacheDir = "where fetched content is kept (default $" + cacheDirVariable + ", else $XDG_CACHE_HOME/kubexm)"
	useDocker   = "docker's file of credentials (default docker's own)"
	useOut      = "write to this file (default standard output)"
)

// renamedTo is the annotation of a flag that has another name now.
const renamedTo = "kubexm_renamed"

// renamed keeps an old name of a flag: it does what the new one does, stands in no
// help, and says so.
func renamed(cmd *cobra.Command, old, name string) {
	f := cmd.Flags().Lookup(name)
	cmd.Flags().AddFlag(&pflag.Flag{
		Name: old, Usage: f.Usage, Value: f.Value, DefValue: f.DefValue, NoOptDefVal: f.NoOptDefVal, Hidden: true,
		Annotations: map[string][]string{renamedTo: {name}},
	})
}

// takeRenamed has flags that were given by an old name count as given.
func (a *app) takeRenamed(cmd *cobra.Command) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if name := f.Annotations[renamedTo]; len(name) > 0 {
			fmt.Fprintf(a.err, "note: --%s is called --%s now\n", f.Name, name[0])
			cmd.Flags().Lookup(name[0]).Changed = true
		}
	})
}

// flagVariables are the environment variables that stand in for flags.
func flagVariables() map[string]string {
	return map[string]string{"filename": "KUBEXM_CONFIG", "workdir": "KUBEXM_WORKDIR", "key": "KUBEXM_KEY", "progress": "KUBEXM_PROGRESS"}
}

// nameVariables has the help of each flag name its variable.
func nameVariables(root *cobra.Command) {
	eachCommand(root, func(cmd *cobra.Command) {
		for name, variable := range flagVariables() {
			if f := cmd.LocalFlags().Lookup(name); f != nil {
				f.Usage += " [$" + variable + "]"
			}
		}
	})
}

// fromEnvironment gives flags that were not given the values of their variables,
// unless a flag was given that excludes them.
func (a *app) fromEnvironment(cmd *cobra.Command) error {
	for _, name := range sortedKeys(flagVariables()) {
		variable := flagVariables()[name]
		f := cmd.Flags().Lookup(name)
		value, set := a.env(variable)
		if f == nil || f.Changed || !set || value == "" || excluded(cmd, f) {
			continue
		}
		if err := cmd.Flags().Set(name, value); err != nil {
			return usageError(cmd, fmt.Errorf("%s: %w", variable, err))
		}
	}
	return nil
}

// excluded tells whether a flag was given that cannot be given together with f.
func excluded(cmd *cobra.Command, f *pflag.Flag) bool {
	return slices.ContainsFunc(f.Annotations[groupExclusive], func(group string) bool {
		return slices.ContainsFunc(strings.Fields(group), func(name string) bool {
			return name != f.Name && cmd.Flags().Changed(name)
		})
	})
}

// structured tells whether the command was asked for a document, and not for text.
func (a *app) structured() bool { return a.output == "json" || a.output == "yaml" }

// also is what a command adds to the meaning of a flag.
func also(use, more string) string { return cmp.Or(strings.TrimSuffix(use+"; "+more, "; "), use) }
