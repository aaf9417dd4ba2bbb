package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/mensylisir/kubexm/bundle"
	"github.com/mensylisir/kubexm/bundle/fetch"
	"github.com/mensylisir/kubexm/cmd/kubexm/console"
	"github.com/mensylisir/kubexm/manifest/refusal"
)

func (a *app) cacheCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cache",
		Short: "List and prune the content cache",
		Long: `The content cache stores, by sha256, what "bundle build" and "bundle lock" read again: metadata,
documents of images, charts and unfinished downloads. Files and layers go straight into the bundle.
The cache remembers where bundles were written, and later builds take blobs from them. With
"bundle build --keep-cache" it stores everything. All of it can be removed; what is needed is then
downloaded again.`,
		Args: cobra.NoArgs,
	}
	cmd.AddCommand(a.cacheLs(), a.cachePrune())
	return cmd
}

func cacheDirFlag(cmd *cobra.Command, f *sourceFlags) {
	cmd.Flags().StringVar(&f.cacheDir, "cache-dir", "", useCacheDir)
	_ = cmd.MarkFlagDirname("cache-dir")
}

func (a *app) cacheLs() *cobra.Command {
	f := &sourceFlags{}
	cmd := &cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "List the contents of the cache",
		Long: `List every blob and every unfinished download in the cache, most recently used first, and the
bundles that later builds take blobs from. Bundles are not part of the cache, and their size is not
counted.`,
		Example: "  kubexm cache ls\n  kubexm cache ls -o json | jq '.blobs | map(.size) | add'",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			c, err := a.cache(f)
			if err != nil {
				return err
			}
			all, err := c.List()
			if err != nil {
				return err
			}
			bundles, err := c.Archives()
			if err != nil {
				return err
			}
			if a.structured() {
				return a.printValue(struct {
					Blobs   []fetch.Entry   `json:"blobs"`
					Bundles []fetch.Archive `json:"bundles"`
				}{append([]fetch.Entry{}, all...), append([]fetch.Archive{}, bundles...)})
			}
			w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "SHA256\tSIZE\tUSED")
			total := int64(0)
			for _, e := range all {
				name := e.Name
				if e.Partial {
					name = "unfinished"
				}
				fmt.Fprintf(w, "%s\t%s\t%s\n", name[:min(len(name), 12)], bundle.Bytes(e.Size), e.Used.Format("2006-01-02 15:04"))
				total += e.Size
			}
			if err := w.Flush(); err != nil {
				return err
			}
			for _, b := range bundles {
				fmt.Fprintf(a.out, "bundle  %s  %s\n", bundle.Bytes(b.Size), b.Path)
			}
			_, err = fmt.Fprintf(a.out, "%s: %s, %s\n", c.Dir(), console.FormatCount(len(all), "file"), bundle.Bytes(total))
			return err
		},
	}
	cacheDirFlag(cmd, f)
	a.outputFlag(cmd, "table", "json")
	return cmd
}

func (a *app) cachePrune() *cobra.Command {
	f := &sourceFlags{}
	var unused span
	var size byteSize
	var all, dryRun bool
	cmd := &cobra.Command{
		Use:   "prune",
		Short: "Remove unused content from the cache",
		Long: `Remove blobs and unfinished downloads: those that were not used for a time, the least recently
used beyond a total size, or all. Nothing is removed while a build or another command uses the cache.
Bundles are never removed; those that are gone are no longer remembered.

Exit codes: 0 success, 1 the cache is in use, 2 error in the flags.`,
		Example: `  kubexm cache prune --unused-for 30d
  kubexm cache prune --max-size 20GiB --dry-run
  kubexm cache prune --all`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !all && unused == 0 && size == 0 {
				return usageError(cmd, errors.New("specify what to remove: --unused-for, --max-size or --all"))
			}
			c, err := a.cache(f)
			if err != nil {
				return err
			}
			o := fetch.PruneOptions{MaxSize: int64(size), DryRun: dryRun}
			if unused > 0 {
				o.UsedSince = time.Now().Add(-time.Duration(unused))
			}
			p, err := c.Prune(cmd.Context(), o)
			if errors.Is(err, fetch.ErrInUse) {
				return &refusal.Error{Err: err, Kind: refusal.Failed, Advice: "run it again when the command that uses the cache has ended"}
			}
			if err != nil {
				return err
			}
			if a.structured() {
				return a.printValue(p)
			}
			done := "removed"
			if dryRun {
				done = "would remove"
			}
			_, err = fmt.Fprintf(a.out, "%s: %s %s, %s; left %s, %s\n", c.Dir(), done, console.FormatCount(p.Removed, "file"), bundle.Bytes(p.RemovedBytes),
				console.FormatCount(p.Remaining, "file"), bundle.Bytes(p.RemainingBytes))
			return err
		},
	}
	cacheDirFlag(cmd, f)
	cmd.Flags().Var(&unused, "unused-for", "remove what was not used for this time: 30d, 12h")
	cmd.Flags().Var(&size, "max-size", "remove the least recently used until the cache has this size: 20GiB")
	cmd.Flags().BoolVar(&all, "all", false, "include everything; the cache is empty then")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, useDryRun)
	cmd.MarkFlagsMutuallyExclusive("all", "unused-for")
	cmd.MarkFlagsMutuallyExclusive("all", "max-size")
	a.outputFlag(cmd, "text", "json")
	return cmd
}

// span is a flag whose value is a duration, in Go's format or in days ("30d").
type span time.Duration

func (s *span) String() string {
	if s == nil || *s == 0 {
		return ""
	}
	return time.Duration(*s).String()
}

func (s *span) Set(text string) error {
	wrong := fmt.Errorf("%q is not a valid duration; write it as 30d, 12h or 90m", text)
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16)
		if err != nil || n == 0 {
			return wrong
		}
		*s = span(time.Duration(n) * 24 * time.Hour)
		return nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return wrong
	}
	*s = span(d)
	return nil
}

// Type returns the placeholder of the value in the help.
func (s *span) Type() string { return "duration" }
