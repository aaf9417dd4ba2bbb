package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/mensylisir/kubexm/bundle"
	"github.com/mensylisir/kubexm/installer/report"
	"github.com/mensylisir/kubexm/manifest/refusal"
)

// baseFlags list the archives that contain the blobs that a delta leaves out.
type baseFlags struct{ bases []string }

func (f *baseFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&f.bases, "base", nil, "for a delta: an archive that contains what the delta leaves out; may be given several times")
	_ = cmd.MarkFlagFilename("base", "tar.zst", "001")
}

// check returns a usage error for the first archive that does not exist.
func (f *baseFlags) check() error { return checkArchives("--base", f.bases) }

func checkArchives(flag string, paths []string) error {
	for _, path := range paths {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return &refusal.Error{Err: fmt.Errorf("%s: %w", flag, err), Kind: refusal.Usage, Advice: "specify an archive, or the first of its volumes"}
		}
	}
	return nil
}

// complete writes the complete bundle from a delta and its bases.
func (a *app) complete(cmd *cobra.Command, args []string, f *policyFlags, base *baseFlags, force bool) error {
	if len(args) < 2 {
		return &refusal.Error{Err: errors.New("the name of the complete bundle is missing"), Kind: refusal.Usage, Advice: "kubexm bundle join DELTA ARCHIVE --base BASE"}
	}
	if err := base.check(); err != nil {
		return err
	}
	if err := refuseExisting(args[1], force); err != nil {
		return err
	}
	policy, err := a.policy(f, nil)
	if err != nil {
		return err
	}
	p := a.progress(a.output != "text")
	p.Phase("join")
	built, err := bundle.Complete(cmd.Context(), bundle.CompleteRequest{
		Delta: args[0], Policy: policy, Bases: base.bases, Output: args[1], Parallel: runtime.GOMAXPROCS(0), Progress: p.Add, Planned: p.Expect,
	})
	p.Stop()
	if err != nil {
		return report.Refused(err)
	}
	if a.structured() {
		return a.printValue(built)
	}
	fmt.Fprintf(a.out, "%s: %s, complete bundle\n  root  %s\n", built.Path, bundle.Bytes(built.Bytes), built.Root)
	return a.printVerify(cmd.Context(), f, built.Path)
}
