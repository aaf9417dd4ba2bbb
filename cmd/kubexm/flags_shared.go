package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Descriptions of flags that several commands have: a flag means the same in all of
// them. A command may add a clause after a semicolon.
const (
	useConfig    = "the cluster config"
	useBundle    = "the bundle: NAME.tar.zst, or the first of its volumes"
	useWorkdir   = "the folder that contains .kubexm"
	useForce     = "replace existing files"
	useDryRun    = "change nothing, and print what would be done"
	useParallel  = "maximum number in parallel: " // followed by what is counted
	useSignKey   = "the private key to sign with (cosign.key)"
	useKey       = "public key (cosign.pub) to verify the signature with; may be given several times"
	useYes       = "do not prompt for confirmation"
	useVersions  = "a file of kind Versions: your versions and digests, which override the embedded matrix"
	usePlainHTTP = "use HTTP without TLS"
	useCacheDir  = "folder of downloaded content (default $" + cacheDirVariable + ", else $XDG_CACHE_HOME/kubexm)"
	useKeepCache = "keep a copy of everything in the cache, for machines that delete their bundles"
	useDocker    = "docker's config file with credentials (default docker's own)"
	useOut       = "write to this file (default standard output)"
)

// renamedTo is the annotation of the old name of a renamed flag.
const renamedTo = "kubexm_renamed"

// renamed adds the old name of a flag. It has the same effect, is not in the help, and
// prints a note with the new name.
func renamed(cmd *cobra.Command, old, name string) {
	f := cmd.Flags().Lookup(name)
	cmd.Flags().AddFlag(&pflag.Flag{
		Name: old, Usage: f.Usage, Value: f.Value, DefValue: f.DefValue, NoOptDefVal: f.NoOptDefVal, Hidden: true,
		Annotations: map[string][]string{renamedTo: {name}},
	})
}

// takeRenamed marks flags that were given by an old name as changed.
func (a *app) takeRenamed(cmd *cobra.Command) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if name := f.Annotations[renamedTo]; len(name) > 0 {
			fmt.Fprintf(a.err, "note: --%s was renamed to --%s\n", f.Name, name[0])
			cmd.Flags().Lookup(name[0]).Changed = true
		}
	})
}

// flagVariables maps flags to the environment variables that set their defaults.
func flagVariables() map[string]string {
	return map[string]string{"filename": "KUBEXM_CONFIG", "workdir": "KUBEXM_WORKDIR", "key": "KUBEXM_KEY", "progress": "KUBEXM_PROGRESS"}
}

// nameVariables adds the environment variable to the help of each flag.
func nameVariables(root *cobra.Command) {
	eachCommand(root, func(cmd *cobra.Command) {
		for name, variable := range flagVariables() {
			if f := cmd.LocalFlags().Lookup(name); f != nil {
				f.Usage += " [$" + variable + "]"
			}
		}
	})
}

// fromEnvironment sets flags that were not given from their environment variables,
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

// excluded reports whether a flag was given that cannot be used together with f.
func excluded(cmd *cobra.Command, f *pflag.Flag) bool {
	return slices.ContainsFunc(f.Annotations[groupExclusive], func(group string) bool {
		return slices.ContainsFunc(strings.Fields(group), func(name string) bool {
			return name != f.Name && cmd.Flags().Changed(name)
		})
	})
}

// structured reports whether the output is JSON or YAML.
func (a *app) structured() bool { return a.output == "json" || a.output == "yaml" }

// also appends a command's own clause to a shared flag description.
func also(use, more string) string { return cmp.Or(strings.TrimSuffix(use+"; "+more, "; "), use) }
