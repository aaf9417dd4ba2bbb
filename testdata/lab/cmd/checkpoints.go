package main

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/mensylisir/kubexm/testdata/lab"
	"github.com/mensylisir/kubexm/testdata/lab/components"
)

func checkpointCommand() *cobra.Command {
	var f which
	cmd := &cobra.Command{
		Use:   "checkpoint NAME [FOLDER...]",
		Short: "Keep what the hosts' disks and some folders of this machine hold at one moment",
		Long: `Keep what the hosts' disks hold, all at one moment, and what folders of this machine hold:
kubexm's, with its bundle and configs. It outlives the lab; restore brings it back.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := f.open()
			if err != nil {
				return err
			}
			begun := time.Now()
			if err := l.Checkpoint(cmd.Context(), args[0], args[1:]...); err != nil {
				return err
			}
			took := time.Since(begun)
			if err := l.Keep(cmd.Context(), args[0]); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "checkpoint %s of lab %s: %d hosts in %s\n", args[0], l.Name, len(l.Hosts), took.Round(10*time.Millisecond))
			return nil
		},
	}
	f.add(cmd)
	return cmd
}

func restoreCommand() *cobra.Command {
	var f which
	cmd := &cobra.Command{
		Use:   "restore NAME",
		Short: "Bring a lab back to a checkpoint; one that is down comes up from it",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cache, err := components.DefaultCache()
			if err != nil {
				return err
			}
			labs, err := lab.List(cache)
			if err != nil {
				return err
			}
			begun := time.Now()
			for _, l := range labs {
				if l.Name != f.name {
					continue
				}
				if err := l.Restore(cmd.Context(), args[0]); err != nil {
					return err
				}
				fmt.Fprintf(cmd.OutOrStdout(), "lab %s is at checkpoint %s again, in %s\n", l.Name, args[0], time.Since(begun).Round(10*time.Millisecond))
				return nil
			}
			log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelInfo}))
			l, err := lab.Resume(cmd.Context(), lab.Options{Name: f.name, Log: log}, args[0])
			if err != nil {
				return err
			}
			show(cmd, l)
			return nil
		},
	}
	f.add(cmd)
	return cmd
}

func forgetCommand() *cobra.Command {
	var f which
	cmd := &cobra.Command{
		Use:   "forget NAME...",
		Short: "Remove checkpoints of a lab, which may be down",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cache, err := components.DefaultCache()
			if err != nil {
				return err
			}
			for _, name := range args {
				if err := lab.Forget(cmd.Context(), cache, f.name, name); err != nil {
					return err
				}
			}
			return nil
		},
	}
	f.add(cmd)
	return cmd
}

func checkpointsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "checkpoints",
		Short: "List the checkpoints of all labs, and what disks and checkpoints take",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cache, err := components.DefaultCache()
			if err != nil {
				return err
			}
			all, err := lab.Checkpoints(cmd.Context(), cache)
			if err != nil {
				return err
			}
			out := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintln(out, "LAB\tCHECKPOINT\tHOSTS\tMADE\tSIZE\tADDRESSES\tUNTIL\tFOLDERS")
			for _, s := range all {
				until := "its lab goes down"
				if s.Kept {
					until = "forgotten"
				}
				fmt.Fprintf(out, "%s\t%s\t%d\t%s\t%s\t%s\t%s\t%s\n", s.Lab.Name, s.Name, len(s.Lab.Hosts), s.Made.Format(time.DateTime), gib(s.Size), s.Lab.Subnet(), until, strings.Join(s.Folders, " "))
			}
			if err := out.Flush(); err != nil {
				return err
			}
			var is syscall.Stat_t
			file := filepath.Join(cache, "labs.xfs")
			if err := syscall.Stat(file, &is); err == nil {
				fmt.Fprintf(cmd.OutOrStdout(), "they share what is the same: %s takes %s in all, with the labs that are up\n", file, gib(is.Blocks*512))
			}
			return nil
		},
	}
}

func gib(bytes int64) string { return fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30)) }
