package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/mensylisir/kubexm/bundle"
	"github.com/mensylisir/kubexm/bundle/archive"
	"github.com/mensylisir/kubexm/cmd/kubexm/console"
	"github.com/mensylisir/kubexm/installer/report"
	"github.com/mensylisir/kubexm/manifest/refusal"
)

// volumeFlags are the flags of the commands that write volumes.
type volumeFlags struct {
	size   byteSize
	parity int
}

func (f *volumeFlags) add(cmd *cobra.Command) {
	cmd.Flags().Var(&f.size, "volume-size", "split the archive into volumes of this size: 4GiB, 650MB")
	cmd.Flags().IntVar(&f.parity, "parity", 0, "number of parity volumes; they can replace as many lost or damaged volumes")
}

// check returns a usage error for sizes that the archive's writer would refuse only
// after everything was downloaded.
func (f *volumeFlags) check() error {
	advice := "choose the size of the medium that carries them: 4GiB, 650MB"
	switch {
	case f.size != 0 && f.size < archive.MinVolumeSize:
		return &refusal.Error{Err: fmt.Errorf("volumes of %s are too small, the minimum is %s", bundle.Bytes(int64(f.size)), bundle.Bytes(archive.MinVolumeSize)), Kind: refusal.Usage, Advice: advice}
	case f.parity < 0 || f.parity >= archive.MaxShards:
		return &refusal.Error{Err: fmt.Errorf("--parity %d: data and parity volumes together must be at most %d", f.parity, archive.MaxShards), Kind: refusal.Usage,
			Advice: "one or two parity volumes are usually enough"}
	}
	return nil
}

func (f *volumeFlags) options() archive.VolumeOptions {
	return archive.VolumeOptions{VolumeSize: int64(f.size), Parity: f.parity}
}

func (a *app) bundleSplit() *cobra.Command {
	f := &volumeFlags{}
	force := false
	cmd := &cobra.Command{
		Use:   "split ARCHIVE --volume-size SIZE",
		Short: "Split a bundle into volumes",
		Long: `Split an archive into volumes: ARCHIVE.001, ARCHIVE.002 and so on, with their digests in
ARCHIVE.volumes. Concatenated, the volumes are the archive. Every command that reads a bundle also
accepts the first volume's name, and reads all volumes.

With --parity N there are N additional volumes, ARCHIVE.p001 and so on, each as large as a volume.
"kubexm bundle repair" rebuilds any N lost volumes from the others. The archive itself stays.`,
		Example: `  kubexm bundle split demo.tar.zst --volume-size 4GiB
  kubexm bundle split old.tar.zst --volume-size 650MB --parity 2`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(); err != nil {
				return err
			}
			fi, err := os.Stat(args[0])
			if err != nil {
				return report.Refused(err)
			}
			if err := refuseExisting(args[0]+bundle.FirstVolume, force); err != nil {
				return err
			}
			p := a.progress(a.output != "text")
			p.Phase("split")
			p.Expect(2 * fi.Size()) // copied, then read to hash it
			o := f.options()
			o.Sealing = p.Add
			first, err := bundle.Split(cmd.Context(), args[0], args[0], o, p.Add)
			p.Stop()
			if err != nil {
				return report.Refused(err)
			}
			return a.printVolumes(first)
		},
	}
	f.add(cmd)
	renamed(cmd, "size", "volume-size")
	cmd.Flags().BoolVar(&force, "force", false, useForce)
	_ = cmd.MarkFlagRequired("volume-size")
	completeArchives(cmd)
	a.outputFlag(cmd, "text", "json")
	return cmd
}

// printVolumes prints a summary of an archive in volumes.
func (a *app) printVolumes(first string) error {
	t, err := archive.Volumes(first)
	if err != nil {
		return err
	}
	if a.structured() {
		return a.printValue(struct {
			First   string           `json:"first"`
			Bytes   int64            `json:"bytes"`
			Volumes []archive.Volume `json:"volumes"`
			Parity  []archive.Volume `json:"parity"`
		}{first, t.Size, t.Volumes, append([]archive.Volume{}, t.Parity...)})
	}
	fmt.Fprintf(a.out, "%s: %s in %s", first, bundle.Bytes(t.Size), console.FormatCount(len(t.Volumes), "volume"))
	if n := len(t.Parity); n > 0 {
		fmt.Fprintf(a.out, " and %d of parity", n)
	}
	fmt.Fprintf(a.out, "\n  carry a copy of %s on each disk\n", trimVolume(first)+".volumes")
	return nil
}

func trimVolume(first string) string { return first[:len(first)-len(bundle.FirstVolume)] }

func (a *app) bundleJoin() *cobra.Command {
	force, base, f := false, &baseFlags{}, &policyFlags{}
	cmd := &cobra.Command{
		Use:   "join FIRST-VOLUME [ARCHIVE]",
		Short: "Join volumes, or a delta and its base, into one archive",
		Long: `Concatenate volumes into one archive, and verify each volume's digest. The default name is that of
the volumes without the number. The volumes stay. If a volume is missing or damaged it is reported,
and nothing is written; with parity, run "kubexm bundle repair" first. Joining is optional: every
command also reads volumes.

With --base, complete a delta. The result is the complete bundle, identical to a build from the
same lock file, with the delta's signatures.

The signature of a delta is always verified. That of volumes is verified only with --key or an
identity: they are copied unchanged, and the command that uses the archive verifies it.`,
		Example: `  kubexm bundle join demo.tar.zst.001
  kubexm bundle join /media/disk/demo.tar.zst.001 joined.tar.zst
  kubexm bundle join --key cosign.pub delta.tar.zst new.tar.zst \
    --base old.tar.zst`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(base.bases) > 0 {
				return a.complete(cmd, args, f, base, force)
			}
			t, err := archive.Volumes(args[0])
			if err != nil {
				return report.Refused(err)
			}
			to := trimVolume(args[0])
			if len(args) == 2 {
				to = args[1]
			}
			if err := refuseExisting(to, force); err != nil {
				return err
			}
			if err := a.checkSignature(cmd.Context(), f, args[0]); err != nil {
				return err
			}
			p := a.progress(a.output != "text")
			p.Phase("join")
			p.Expect(t.Size)
			to, err = bundle.Join(cmd.Context(), args[0], to, p.Add)
			p.Stop()
			if err != nil {
				return report.Refused(err)
			}
			if a.structured() {
				return a.printValue(map[string]any{"path": to, "bytes": t.Size})
			}
			fmt.Fprintf(a.out, "%s: %s from %s, digests verified\n", to, bundle.Bytes(t.Size), console.FormatCount(len(t.Volumes), "volume"))
			return a.printVerify(cmd.Context(), f, to)
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, useForce)
	base.add(cmd)
	f.add(cmd)
	completeArchives(cmd)
	a.outputFlag(cmd, "text", "json")
	return cmd
}

func (a *app) bundleRepair() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "repair FIRST-VOLUME",
		Short: "Rebuild lost or damaged volumes from parity",
		Long: `Read all volumes, and rebuild in place those that are missing or do not match their digest in the
table of volumes. As many volumes can be rebuilt as there are parity volumes. If the table itself is
lost, it is restored from the copy in each parity volume. If too many volumes are damaged, all of
them are reported and nothing is changed.

Specify the first volume even if it is missing.`,
		Example: "  kubexm bundle repair demo.tar.zst.001",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p := a.progress(a.output != "text")
			p.Phase("repair")
			rebuilt, err := archive.Repair(cmd.Context(), args[0], p.Add)
			p.Stop()
			if err != nil {
				return report.Refused(err)
			}
			if a.structured() {
				return a.printValue(map[string]any{"mended": append([]string{}, rebuilt...)})
			}
			for _, name := range rebuilt {
				fmt.Fprintf(a.out, "%s: rebuilt\n", name)
			}
			if len(rebuilt) == 0 {
				fmt.Fprintf(a.out, "%s: all volumes are intact, nothing to do\n", args[0])
			}
			return nil
		},
	}
	completeArchives(cmd)
	a.outputFlag(cmd, "text", "json")
	return cmd
}

// verifyVolume verifies one volume; the others need not be present.
func (a *app) verifyVolume(cmd *cobra.Command, first, word string) error {
	p := a.progress(a.output != "text")
	p.Phase("verify")
	v, err := archive.VerifyVolume(cmd.Context(), first, word, p.Add)
	p.Stop()
	if errors.Is(err, fs.ErrNotExist) {
		return &refusal.Error{Err: err, Kind: refusal.Usage}
	}
	if err != nil {
		return report.Refused(err)
	}
	if a.structured() {
		return a.printValue(v)
	}
	fmt.Fprintf(a.out, "%s%s: intact, %s\n  digest  %s\n", trimVolume(first), v.Name, bundle.Bytes(v.Size), v.Digest)
	fmt.Fprintln(a.out, "  note  neither the bundle's signature nor the other volumes were verified")
	return nil
}
