package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/mensylisir/kubexm/bundle"
	"github.com/mensylisir/kubexm/manifest/refusal"
)

// checkArchiveWords refuses what is plainly no bundle where a command takes one, before
// anything is read or fetched: a folder, or a document such as the cluster config.
func checkArchiveWords(cmd *cobra.Command, args []string) error {
	var paths []string
	for i, name := range argumentNames(cmd) {
		if i < len(args) && slices.Contains([]string{"ARCHIVE", "FROM", "TO", "FIRST-VOLUME"}, strings.Trim(name, "[]")) {
			paths = append(paths, args[i])
		}
	}
	for _, name := range []string{"bundle", "base"} {
		if f := cmd.Flags().Lookup(name); f != nil && f.Changed {
			if several, ok := f.Value.(pflag.SliceValue); ok {
				paths = append(paths, several.GetSlice()...)
			} else {
				paths = append(paths, f.Value.String())
			}
		}
	}
	for _, path := range paths {
		if what := bundle.NoArchive(path); what != "" && (what != bundle.ALock || cmd.Name() != "diff") {
			return &refusal.Error{Err: fmt.Errorf("%s is %s; a bundle is NAME.tar.zst", path, what), Kind: refusal.Usage, Advice: "name a bundle; `kubexm bundle build -f CONFIG` makes one"}
		}
	}
	return nil
}

// takeArchive takes the bundle as an argument or as --bundle, and once.
func (f *siteFlags) takeArchive(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0 && f.bundle == "":
		return usageError(cmd, argumentError(cmd, args))
	case len(args) == 1 && f.bundle != "":
		return usageError(cmd, fmt.Errorf("two bundles: %s, and --bundle %s", args[0], f.bundle))
	case len(args) == 1:
		f.bundle = args[0]
	}
	return nil
}
