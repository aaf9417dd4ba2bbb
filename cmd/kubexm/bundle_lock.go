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
		Short: "Resolve a config and pin every artifact of it",
		Long: `Resolve a config against the version matrix, ask upstream for what the matrix does
not know (sizes, image digests, members of archives), and write it all to kubexm.lock.
Charts of add-ons are rendered and manifests read: images that they ask for and that
nobody lists are added, and said (see "kubexm bundle images"). For the operating systems
of spec.bundle.operatingSystems their repositories of packages are read, signatures and
all, and every package that the wanted ones need is pinned.

A lock that stands keeps its pins where they still answer the config. With --update,
image tags, packages, and digests that only upstream vouches for are asked for anew.
When nothing changed, the file stays as it is.`,
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
	cmd.Flags().BoolVar(&f.update, "update", false, "ask upstream anew for what only upstream decides")
	a.outputFlag(cmd, "text", "json")
	return cmd
}

// printLocked says what the lock at r.Path holds and what changed in it.
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

// trustText says who vouches for an artifact's digests, for a person, where that
// is neither the matrix nor the config.
func trustText(x manifest.Artifact) string {
	switch {
	case x.Kind == manifest.Packages && x.Trust == manifest.FromPublished:
		return console.Count(len(x.PackageList()), "package") + ", as its repositories' signatures say"
	case x.Kind == manifest.Packages:
		return console.Count(len(x.PackageList()), "package") + " as served when they were pinned; no signature vouches for them"
	case x.Trust == manifest.FromPublished:
		return "digest as published beside the file when it was pinned"
	}
	return "digest of what was served when it was pinned; nobody else vouches for it"
}

// packagesText counts packages beside files and images; "" where there are none.
func packagesText(s bundle.Summary, size bool) string {
	switch {
	case s.Packages == 0:
		return ""
	case size:
		return fmt.Sprintf(", %s (%s)", console.Count(s.Packages, "package"), bundle.Bytes(s.PackageBytes))
	}
	return ", " + console.Count(s.Packages, "package")
}
