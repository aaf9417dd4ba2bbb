package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

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
		if what := noArchive(path); what != "" && (what != aLock || cmd.Name() != "diff") {
			return &refusal.Error{Err: fmt.Errorf("%s is %s; a bundle is NAME.tar.zst", path, what), Kind: refusal.Usage, Advice: "name a bundle; `kubexm bundle build -f CONFIG` makes one"}
		}
	}
	return nil
}

// aLock is the one document that a command takes in the place of a bundle.
const aLock = "a lock"

// kindLine is where a document says what it is.
var kindLine = regexp.MustCompile(`(?:^|[\s{,])"?kind"?:\s*"?(\w+)`)

// noArchive says what a file is that is no archive; "" where it may be one, or is
// not there.
func noArchive(path string) string {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return ""
	case info.IsDir():
		return "a folder"
	case !info.Mode().IsRegular():
		return ""
	}
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	begin := make([]byte, 4096)
	n, err := io.ReadFull(f, begin)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return ""
	}
	begin = begin[:n]
	for len(begin) > 0 && !utf8.RuneStart(begin[len(begin)-1]) { // the end may be cut
		begin = begin[:len(begin)-1]
	}
	kind := kindLine.FindSubmatch(begin)
	if kind == nil || !utf8.Valid(begin[:max(len(begin)-1, 0)]) {
		return ""
	}
	switch string(kind[1]) {
	case "Cluster":
		return "a cluster config"
	case "Lock":
		return aLock
	case "SiteInventory":
		return "the inventory of a site"
	}
	return "a document of kind " + string(kind[1])
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
