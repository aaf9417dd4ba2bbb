package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mensylisir/kubexm/bundle"
	"github.com/mensylisir/kubexm/installer/report"
	"github.com/mensylisir/kubexm/manifest/refusal"
)

func (a *app) bundleLs() *cobra.Command {
	f := &policyFlags{}
	cmd := &cobra.Command{
		Use:     "ls ARCHIVE",
		Aliases: []string{"list"},
		Short:   "List the contents of a bundle",
		Long: `List every file and image of a bundle, with version, platform, size and digest. The packages of
an operating system are one line; -o wide and -o json list each of them.

Only the archive's index is read and verified; for the blobs see "kubexm bundle verify". With --key
or an identity, a bundle without a valid signature is refused.`,
		Example: "  kubexm bundle ls demo.tar.zst\n  kubexm bundle ls demo.tar.zst -o json | jq -r '.[].digest'",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			policy, err := a.reading(f)
			if err != nil {
				return err
			}
			b, err := bundle.OpenPartial(cmd.Context(), args[0], policy, bundle.Bases{})
			if err != nil {
				return report.Refused(err)
			}
			defer b.Close()
			rows := bundle.Rows(b.Lock)
			if a.structured() {
				return a.printValue(rows)
			}
			return a.printRows(rows, a.output == "wide")
		},
	}
	f.add(cmd)
	completeArchives(cmd)
	a.outputFlag(cmd, "table", "wide", "json", "yaml")
	return cmd
}

func (a *app) bundleShow() *cobra.Command {
	var part string
	f := &policyFlags{}
	cmd := &cobra.Command{
		Use:   "show ARCHIVE [ID]",
		Short: "Show the details of a bundle, or of one artifact",
		Long: `Show a bundle's cluster, serial, versions, platforms and root digest. With an id or a name, show
the lock file's entry of that artifact. --part prints the lock, the config or the summary unchanged.
With --key or an identity, a bundle without a valid signature is refused.`,
		Example: `  kubexm bundle show demo.tar.zst
  kubexm bundle show demo.tar.zst containerd
  kubexm bundle show demo.tar.zst --part lock > kubexm.lock`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			policy, err := a.reading(f)
			if err != nil {
				return err
			}
			b, err := bundle.OpenPartial(cmd.Context(), args[0], policy, bundle.Bases{})
			if err != nil {
				return report.Refused(err)
			}
			defer b.Close()
			if part != "" {
				return a.printPart(b, part)
			}
			if len(args) == 2 {
				return a.showArtifact(b, args[1])
			}
			return a.showBundle(b)
		},
	}
	cmd.Flags().Var(&choice{value: &part, allowed: []string{"lock", "config", "summary"}}, "part", "print one stored document: lock, config, summary")
	f.add(cmd)
	completeArchives(cmd)
	a.outputFlag(cmd, "text", "json", "yaml")
	return cmd
}

func (a *app) printPart(b *bundle.Bundle, part string) error {
	text, err := b.Document(part)
	if err != nil {
		return err
	}
	_, err = a.out.Write(text)
	return err
}

func (a *app) showBundle(b *bundle.Bundle) error {
	if a.output != "text" {
		return a.printValue(struct {
			Root    string            `json:"root" yaml:"root"`
			Signed  bool              `json:"signed" yaml:"signed"`
			Delta   *bundle.DeltaView `json:"delta,omitempty" yaml:"delta,omitempty"`
			Summary bundle.Summary    `json:"summary" yaml:"summary"`
		}{b.Root.Digest.String(), b.Signed, b.DeltaView(), b.Summary})
	}
	s := b.Summary
	signed := "no"
	switch {
	case len(b.AcceptedSignatures) > 0:
		var by []string
		for _, v := range b.AcceptedSignatures {
			by = append(by, v.Signer)
		}
		signed = "by " + strings.Join(by, ", ")
	case b.Signed:
		signed = "yes (not verified; --key verifies it)"
	case b.DetachedSignature != "":
		signed = "no (" + b.DetachedSignature + " signs only the file, and is not verified)"
	}
	fmt.Fprintf(a.out, "cluster    %s\nserial     %d\ncreated    %s\nroot       %s\nsigned     %s\n",
		s.Cluster, s.Serial, s.Created.Format("2006-01-02 15:04:05 MST"), b.Root.Digest, signed)
	if v := b.DeltaView(); v != nil {
		fmt.Fprintf(a.out, "delta      %s\n", v.Expected())
	}
	var platforms []string
	for _, p := range s.Platforms {
		platforms = append(platforms, p.String())
	}
	fmt.Fprintf(a.out, "platforms  %s\nfiles      %d (%s)\n", strings.Join(platforms, ", "), s.Files, bundle.Bytes(s.FileBytes))
	if s.Packages > 0 {
		fmt.Fprintf(a.out, "packages   %d (%s)\n", s.Packages, bundle.Bytes(s.PackageBytes))
	}
	fmt.Fprintf(a.out, "images     %d (%s)\n", s.Images, bundle.Bytes(s.ImageBytes))
	for _, set := range s.Sets {
		fmt.Fprintf(a.out, "set        Kubernetes %s\n", set.Name)
		for _, name := range sortedKeys(set.Components) {
			fmt.Fprintf(a.out, "             %-24s %s\n", name, set.Components[name])
		}
	}
	return nil
}

// showArtifact prints the lock's entry of every artifact or image whose id, name,
// logical name or reference is word.
func (a *app) showArtifact(b *bundle.Bundle, word string) error {
	var found []any
	var names []string
	for _, x := range b.Lock.Artifacts {
		names = append(names, x.Name)
		if x.ID == word || x.Name == word {
			found = append(found, x)
		}
	}
	for _, im := range b.Lock.Images {
		names = append(names, im.Names...)
		repo, _ := bundle.SplitTag(im.Reference)
		if im.ID == word || im.Reference == word || repo == word || slices.Contains(im.Names, word) {
			found = append(found, im)
		}
	}
	if len(found) == 0 {
		return &refusal.Error{Err: fmt.Errorf("%s is not in the bundle%s", word, refusal.DidYouMean(word, names)), Kind: refusal.Usage, Advice: "see `kubexm bundle ls`"}
	}
	if a.structured() {
		return a.printValue(found)
	}
	a.output = "yaml"
	return a.printValue(found)
}
