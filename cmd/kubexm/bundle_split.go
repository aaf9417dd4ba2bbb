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
	cmd.Flags().Var(&f.size, "volume-size", "cut the archive into volumes of this size: 4GiB, 650MB")
	cmd.Flags().IntVar(&f.parity, "parity", 0, "add so many volumes, which mend as many lost or damaged ones")
}

// check refuses at once what the archive's writer would refuse after everything
// was fetched.
func (f *volumeFlags) check() error {
	advice := "make them as large as what carries them: 4GiB, 650MB"
	switch {
	case f.size != 0 && f.size < archive.MinVolumeSize:
		return &refusal.Error{Err: fmt.Errorf("volumes of %s are too small, the least are %s", bundle.Bytes(int64(f.size)), bundle.Bytes(archive.MinVolumeSize)), Kind: refusal.Usage, Advice: advice}
	case f.parity < 0 || f.parity >= archive.MaxShards:
		return &refusal.Error{Err: fmt.Errorf("--parity %d: volumes and those of parity are at most %d together", f.parity, archive.MaxShards), Kind: refusal.Usage,
			Advice: "one or two mend what carrying loses"}
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
		Short: "Cut a bundle into volumes",
		Long: `Cut an archive into volumes, ARCHIVE.001, ARCHIVE.002 and so on, with the digest of each
in ARCHIVE.volumes. One after another they are the archive's own bytes. Every command that
reads a bundle takes the first volume's name and reads across all of them.

With --parity N there are N volumes more, ARCHIVE.p001 and so on, each as large as a volume:
"kubexm bundle repair" makes any N volumes anew from the others. The archive itself stays.`,
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

// printVolumes says what an archive in volumes is made of.
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
	fmt.Fprintf(a.out, "%s: %s in %s", first, bundle.Bytes(t.Size), console.Count(len(t.Volumes), "volume"))
	if n := len(t.Parity); n > 0 {
		fmt.Fprintf(a.out, ", and %d of parity, which mend as many", n)
	}
	fmt.Fprintf(a.out, "\n  carry %s too, on each disk\n", trimVolume(first)+".volumes")
	return nil
}

func trimVolume(first string) string { return first[:len(first)-len(bundle.FirstVolume)] }

func (a *app) bundleJoin() *cobra.Command {
	force, base, f := false, &baseFlags{}, &policyFlags{}
	cmd := &cobra.Command{
		Use:   "join FIRST-VOLUME [ARCHIVE]",
		Short: "Make one archive of volumes, or of a delta and its base",
		Long: `Write volumes one after another as one archive, each compared with its digest on the way.
The default name is the volumes' without a number. The volumes stay. A volume that is missing
or damaged is named, and nothing is written; with parity, "kubexm bundle repair" mends it
first. No bundle has to be joined to be used.

With --base it completes a delta, whether in volumes or not: what comes out is the whole bundle,
byte for byte what a build from the same lock gives, with the delta's signatures. Who made the
delta is asked first. Of volumes that is asked where --key or an identity is given: they are
copied as they are, and whoever uses the archive is asked then.`,
		Example: `  kubexm bundle join demo.tar.zst.001
  kubexm bundle join /media/disk/demo.tar.zst.001 whole.tar.zst
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
			if err := a.vouched(cmd.Context(), f, args[0]); err != nil {
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
			fmt.Fprintf(a.out, "%s: %s from %s, each as its digest says\n", to, bundle.Bytes(t.Size), console.Count(len(t.Volumes), "volume"))
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
		Short: "Make lost or damaged volumes anew from parity",
		Long: `Read all volumes and make those anew, in their place, that are missing or not what the
table of volumes says: from the others and from parity, byte for byte what they were. As many
can be wrong as there are parity volumes. The table too is made anew from the copy that each
parity volume carries. When too many are wrong nothing is changed, and each is named.

The first volume is named whether or not it is there.`,
		Example: "  kubexm bundle repair demo.tar.zst.001",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p := a.progress(a.output != "text")
			p.Phase("repair")
			mended, err := archive.Repair(cmd.Context(), args[0], p.Add)
			p.Stop()
			if err != nil {
				return report.Refused(err)
			}
			if a.structured() {
				return a.printValue(map[string]any{"mended": append([]string{}, mended...)})
			}
			for _, name := range mended {
				fmt.Fprintf(a.out, "%s: made anew\n", name)
			}
			if len(mended) == 0 {
				fmt.Fprintf(a.out, "%s: every volume is whole, nothing to do\n", args[0])
			}
			return nil
		},
	}
	completeArchives(cmd)
	a.outputFlag(cmd, "text", "json")
	return cmd
}

// verifyVolume checks one volume alone, while its disk is at hand.
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
	fmt.Fprintf(a.out, "%s%s: whole, %s\n  digest  %s\n", trimVolume(first), v.Name, bundle.Bytes(v.Size), v.Digest)
	fmt.Fprintln(a.out, "  note  one volume says nothing of who made the bundle, nor of the others")
	return nil
}
