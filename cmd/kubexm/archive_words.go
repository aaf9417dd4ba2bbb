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

// checkArchiveWords returns a usage error if an argument or flag that takes a bundle
// names a folder or a document such as the cluster config. It runs before anything is
// read or fetched.
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
		if what := bundle.DescribeNonArchive(path); what != "" && (what != bundle.LockDescription || cmd.Name() != "diff") {
			return &refusal.Error{Err: fmt.Errorf("%s is %s; a bundle is NAME.tar.zst", path, what), Kind: refusal.Usage, Advice: "specify a bundle; `kubexm bundle build -f CONFIG` builds one"}
		}
	}
	return nil
}

// takeArchive sets f.bundle from the argument. It returns a usage error if neither or
// both of the argument and --bundle are given.
func (f *siteFlags) takeArchive(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0 && f.bundle == "":
		return usageError(cmd, argumentError(cmd, args))
	case len(args) == 1 && f.bundle != "":
		return usageError(cmd, fmt.Errorf("two bundles are given: %s, and --bundle %s", args[0], f.bundle))
	case len(args) == 1:
		f.bundle = args[0]
	}
	return nil
}
