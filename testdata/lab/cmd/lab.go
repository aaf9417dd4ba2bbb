package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"os/exec"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mensylisir/kubexm/testdata/lab"
	"github.com/mensylisir/kubexm/testdata/lab/components"
)

// which is the lab that a command is about.
type which struct{ name string }

func (f *which) add(cmd *cobra.Command) {
	name := os.Getenv("LAB")
	if name == "" {
		name = "default"
	}
	cmd.Flags().StringVar(&f.name, "lab", name, "the lab's name; the environment's LAB, where set")
}

func (f *which) open() (*lab.Lab, error) {
	cache, err := components.DefaultCache()
	if err != nil {
		return nil, err
	}
	return lab.Open(cache, f.name)
}

func upCommand() *cobra.Command {
	var f which
	var hosts int
	var disk int64
	var roots []string
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Bring a lab up: hosts with systemd and ssh, on a network that leads nowhere",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelInfo}))
			l, err := lab.Up(cmd.Context(), lab.Options{Name: f.name, Hosts: hosts, Roots: roots, DiskSize: disk << 30, Log: log})
			if err != nil {
				return err
			}
			show(cmd, l)
			return nil
		},
	}
	f.add(cmd)
	cmd.Flags().IntVarP(&hosts, "hosts", "n", 3, "how many hosts")
	cmd.Flags().Int64Var(&disk, "disk", 0, "how large the hosts' disks are, in GiB, where not 40")
	cmd.Flags().StringSliceVar(&roots, "root", nil, "what h1, h2, … are, from the beginning again: "+strings.Join(lab.AllRoots, ", ")+" (default "+lab.Debian12+")")
	return cmd
}

// show prints how to get into a lab.
func show(cmd *cobra.Command, l *lab.Lab) {
	out := cmd.OutOrStdout()
	fmt.Fprintf(out, "lab %s: %s, nothing leads out of it\n", l.Name, l.Subnet())
	for _, h := range l.Hosts {
		fmt.Fprintf(out, "  %-8s %-14s %-16s %s\n", h.Name, h.Address, h.Address6, h.Root)
	}
	fmt.Fprintf(out, "  %-8s %-14s to run kubexm from: ip netns exec %s …\n", "workdir", l.Workdir().Address, l.Workdir().Netns)
	fmt.Fprintf(out, "  users    %s and %s by the key %s; %s by the password %s\n", lab.RootUser, lab.SudoUser, l.Key(), lab.PasswordUser, lab.Password)
	fmt.Fprintf(out, "  known    %s\n", l.KnownHosts())
}

func downCommand() *cobra.Command {
	var f which
	var all bool
	cmd := &cobra.Command{
		Use:   "down",
		Short: "Take a lab away, with everything that belongs to it",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cache, err := components.DefaultCache()
			if err != nil {
				return err
			}
			labs, err := lab.List(cache)
			if err != nil {
				return err
			}
			var errs []error
			for _, l := range labs {
				if !all && l.Name != f.name {
					continue
				}
				if err := l.Down(); err != nil {
					errs = append(errs, err)
					continue
				}
				fmt.Fprintf(cmd.OutOrStdout(), "lab %s is down; nothing of it is left\n", l.Name)
			}
			return errors.Join(errs...)
		},
	}
	f.add(cmd)
	cmd.Flags().BoolVar(&all, "all", false, "every lab that is up")
	return cmd
}

func listCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the labs that are up, and how to get into them",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cache, err := components.DefaultCache()
			if err != nil {
				return err
			}
			labs, err := lab.List(cache)
			if err != nil {
				return err
			}
			for _, l := range labs {
				show(cmd, l)
			}
			return nil
		},
	}
}

func onCommand() *cobra.Command {
	var f which
	var user string
	cmd := &cobra.Command{
		Use:   "on HOST [COMMAND [ARG...]]",
		Short: "Run a command on a host, or on the workdir host; without a command a shell",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := f.open()
			if err != nil {
				return err
			}
			var c *exec.Cmd
			switch {
			case args[0] != "workdir":
				h, err := l.Host(args[0])
				if err != nil {
					return err
				}
				c = l.SSH(cmd.Context(), h, user, args[1:]...)
			case len(args) == 1:
				c = l.Workdir().Command(cmd.Context(), "bash")
			default:
				c = l.Workdir().Command(cmd.Context(), args[1], args[2:]...)
			}
			c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
			err = c.Run()
			var ended *exec.ExitError
			if errors.As(err, &ended) && ended.Exited() {
				return exited(ended.ExitCode())
			}
			return err
		},
	}
	f.add(cmd)
	cmd.Flags().SetInterspersed(false)
	cmd.Flags().StringVar(&user, "user", lab.RootUser, "the host's user")
	return cmd
}

func egressCommand() *cobra.Command {
	var f which
	var output string
	var inside []string
	cmd := &cobra.Command{
		Use:   "egress",
		Short: "Tell what tried to leave the lab; it is an error if anything did",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			l, err := f.open()
			if err != nil {
				return err
			}
			for _, text := range inside {
				r, err := netip.ParsePrefix(text)
				if err != nil {
					return err
				}
				l.Inside(r)
			}
			all, err := l.Egress(cmd.Context())
			if err != nil {
				return err
			}
			if output == "json" {
				enc := json.NewEncoder(cmd.OutOrStdout())
				enc.SetIndent("", "  ")
				return enc.Encode(all)
			}
			for _, a := range all {
				line := a.String()
				if a.Allowed != "" {
					line += ": " + a.Allowed
				}
				fmt.Fprintln(cmd.OutOrStdout(), line)
			}
			if left := lab.Left(all); len(left) > 0 {
				return fmt.Errorf("%d of %d attempts are not housekeeping", len(left), len(all))
			}
			return nil
		},
	}
	f.add(cmd)
	cmd.Flags().StringVarP(&output, "output", "o", "", "json, for programs")
	cmd.Flags().StringSliceVar(&inside, "inside", nil, "ranges that are a cluster's own, for its Services")
	return cmd
}
