package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

// strictUsage makes cmd and all below it answer for their words: a command that
// does not exist, or a wrong number of arguments, is a mistake in the command
// line. Cobra alone prints a group's help for these and ends well.
func strictUsage(cmd *cobra.Command) {
	group := !cmd.Runnable()
	if group {
		cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		cmd.DisableFlagsInUseLine = true
	}
	check := cmd.Args
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if group && len(args) > 0 {
			return usageError(cmd, fmt.Errorf("unknown command %q for %q%s", args[0], cmd.CommandPath(), didYouMean(args[0], subcommands(cmd))))
		}
		if check == nil {
			return nil
		}
		if err := check(cmd, args); err != nil {
			return usageError(cmd, err)
		}
		return nil
	}
	for _, sub := range cmd.Commands() {
		strictUsage(sub)
	}
}

// flagsAsWanted checks what cobra would check a moment later, as a mistake in
// the command line.
func flagsAsWanted(cmd *cobra.Command) error {
	if err := cmd.ValidateRequiredFlags(); err != nil {
		return usageError(cmd, err)
	}
	if err := cmd.ValidateFlagGroups(); err != nil {
		return usageError(cmd, err)
	}
	return nil
}

// subcommands gives the names of the commands right below cmd.
func subcommands(cmd *cobra.Command) []string {
	var names []string
	for _, sub := range cmd.Commands() {
		names = append(names, sub.Name())
	}
	return names
}
