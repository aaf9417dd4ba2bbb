package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/mensylisir/kubexm/bundle"
	"github.com/mensylisir/kubexm/cmd/kubexm/console"
	"github.com/mensylisir/kubexm/manifest"
)

func (a *app) bundleLock() *cobra.Command {
	f := &sourceFlags{}
	cmd := &cobra.Command{
		Use:   "lock -f CONFIG",
		Short: "Resolve a config and pin its artifacts in kubexm.lock",
		Long: `Resolve a config against the version matrix, and write the result to kubexm.lock. What the matrix
does not contain is read from upstream: sizes, image digests and files inside archives.

Charts of add-ons are rendered and manifests are read. Images that they use and that are not
listed yet are added and reported (see "kubexm bundle images"). For the operating systems of
spec.bundle.operatingSystems the package repositories are read and their signatures verified.
Every package that is required, directly or as a dependency, is pinned.

Existing pins are preserved as long as they match the config. With --update, image tags, packages
and digests that come only from upstream are queried again. If nothing changed, the file is not
written.`,
		Example: `  kubexm bundle lock -f config.yaml
  kubexm bundle lock -f config.yaml --update       # have tags moved?
  kubexm bundle lock -f config.yaml -o json        # the changes, for a script`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := a.resolve(f)
			if err != nil {
				return err
			}
			if r.Current() {
				return a.printLocked(r, r.Previous, nil)
			}
			cache, release, err := a.heldCache(cmd.Context(), f)
			if err != nil {
				return err
			}
			defer release()
			p := a.progress(a.output != "text")
			defer p.Stop()
			p.Phase("pin")
			c, err := a.client(f, cache, r.Cluster, p)
			if err != nil {
				return err
			}
			l, err := a.pin(cmd.Context(), r, c, f.parallel)
			p.Stop()
			if err != nil {
				return err
			}
			_, changes := bundle.Adopt(l, r.Previous)
			return a.printLocked(r, l, changes)
		},
	}
	f.add(cmd)
	cmd.Flags().BoolVar(&f.update, "update", false, "query upstream again for image tags, packages and digests that only upstream has")
	a.outputFlag(cmd, "text", "json")
	return cmd
}

// printLocked prints a summary of the lock at r.Path, and its changes.
func (a *app) printLocked(r *bundle.Resolution, l *manifest.Lock, changes []bundle.Change) error {
	s := bundle.Summarize(l)
	if a.structured() {
		return a.printValue(struct {
			Path    string          `json:"path"`
			Summary bundle.Summary  `json:"summary"`
			Changes []bundle.Change `json:"changes"`
		}{r.Path, s, changes})
	}
	state := fmt.Sprintf("%d changes", len(changes))
	if len(changes) == 0 {
		state = "unchanged"
	}
	fmt.Fprintf(a.out, "%s: serial %d, %d files (%s)%s, %d images (%s), %s%s\n", r.Path, s.Serial,
		s.Files, bundle.Bytes(s.FileBytes), packagesText(s, true), s.Images, bundle.Bytes(s.ImageBytes), state, bundle.ListChanges(changes, 20))
	for _, x := range l.Artifacts {
		if x.Trust == manifest.FromPublished || x.Trust == manifest.FromContent {
			fmt.Fprintf(a.out, "  %s: %s\n", x.ID, trustText(x))
		}
	}
	return nil
}

// trustText describes the source of an artifact's digests if that is neither the matrix
// nor the config.
func trustText(x manifest.Artifact) string {
	switch {
	case x.Kind == manifest.Packages && x.Trust == manifest.FromPublished:
		return console.FormatCount(len(x.PackageList()), "package") + ", verified by their repositories' signatures"
	case x.Kind == manifest.Packages:
		return console.FormatCount(len(x.PackageList()), "package") + " as downloaded when they were pinned; without a signature"
	case x.Trust == manifest.FromPublished:
		return "digest as published beside the file when it was pinned"
	}
	return "digest of the content as downloaded when it was pinned; no other source confirms it"
}

// packagesText returns the number of packages for a summary, with their size if size is
// set; "" without packages.
func packagesText(s bundle.Summary, size bool) string {
	switch {
	case s.Packages == 0:
		return ""
	case size:
		return fmt.Sprintf(", %s (%s)", console.FormatCount(s.Packages, "package"), bundle.Bytes(s.PackageBytes))
	}
	return ", " + console.FormatCount(s.Packages, "package")
}
