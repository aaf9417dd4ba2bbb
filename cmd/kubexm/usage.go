package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// strictUsage makes cmd and its subcommands return a usage error for an unknown command
// or a wrong number of arguments. Cobra alone prints a group's help for these and
// returns no error.
func strictUsage(cmd *cobra.Command) {
	if !cmd.Runnable() {
		cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		cmd.DisableFlagsInUseLine = true
	}
	check := cmd.Args
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if check == nil || check(cmd, args) == nil {
			return nil
		}
		return usageError(cmd, argumentError(cmd, args))
	}
	for _, sub := range cmd.Commands() {
		strictUsage(sub)
	}
}

// argumentError returns the error for a missing or a surplus argument.
func argumentError(cmd *cobra.Command, args []string) error {
	var needed []string
	all := argumentNames(cmd)
	for _, w := range all {
		if !strings.HasPrefix(w, "[") {
			needed = append(needed, w)
		}
	}
	name := strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" ")
	if len(args) < len(needed) {
		return fmt.Errorf("%s requires the %s: %s", name, argumentName(needed[len(args)]), useLine(cmd))
	}
	return fmt.Errorf("%s does not take the argument %q: %s", name, args[min(len(all), len(args)-1)], useLine(cmd))
}

// argumentNames returns the arguments of the usage line, in order; those in brackets are
// optional.
func argumentNames(cmd *cobra.Command) []string {
	var names []string
	words := strings.Fields(strings.TrimPrefix(cmd.Use, cmd.Name()))
	for i := 0; i < len(words) && words[i] != "|"; i++ {
		if strings.HasPrefix(strings.Trim(words[i], "[]{}"), "-") {
			i++ // its value
			continue
		}
		names = append(names, words[i])
	}
	return names
}

// argumentName returns the name of an argument of the usage line for an error message.
func argumentName(word string) string {
	switch word {
	case "DIR":
		return "folder"
	case "FROM", "TO":
		return "archive to compare " + strings.ToLower(word)
	case "HOST/REPOSITORY:TAG":
		return "reference"
	}
	return strings.ReplaceAll(strings.ToLower(word), "-", " ")
}

// useLine returns the usage line of cmd.
func useLine(cmd *cobra.Command) string {
	return cmd.CommandPath() + strings.TrimPrefix(cmd.Use, cmd.Name())
}

// The annotations in which cobra stores groups of flags. Each value is a group: flag
// names separated by spaces.
const (
	groupOneRequired = "cobra_annotation_one_required"
	groupExclusive   = "cobra_annotation_mutually_exclusive"
	groupTogether    = "cobra_annotation_required_if_others_set"
)

// checkFlagUse checks required flags and flag groups before cobra does, so that they are
// reported as usage errors.
func checkFlagUse(cmd *cobra.Command) error {
	var missing []error
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if len(f.Annotations[cobra.BashCompOneRequiredFlag]) > 0 && !f.Changed {
			what, _, _ := strings.Cut(f.Usage, ";")
			what, _, _ = strings.Cut(what, " [$")
			missing = append(missing, fmt.Errorf("%s is missing: %s", flagName(f), what))
		}
		if n := f.Value.Type(); f.Name == "parallel" && n == "int" && f.Changed && (f.Value.String() == "0" || strings.HasPrefix(f.Value.String(), "-")) {
			missing = append(missing, fmt.Errorf("--parallel %s: must be at least 1", f.Value))
		}
	})
	if len(missing) == 0 {
		missing = groupErrors(cmd)
	}
	if err := errors.Join(missing...); err != nil {
		return usageError(cmd, err)
	}
	return nil
}

// groupErrors checks the flag groups.
func groupErrors(cmd *cobra.Command) []error {
	var out []error
	seen := map[string]bool{}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		for _, kind := range []string{groupOneRequired, groupExclusive, groupTogether} {
			for _, group := range f.Annotations[kind] {
				if seen[kind+group] {
					continue
				}
				seen[kind+group] = true
				if err := groupError(cmd, kind, strings.Fields(group)); err != nil {
					out = append(out, err)
				}
			}
		}
	})
	return out
}

func groupError(cmd *cobra.Command, kind string, names []string) error {
	var set, unset []string
	for _, n := range names {
		f := cmd.Flags().Lookup(n)
		if f.Changed {
			set = append(set, flagName(f))
		} else {
			unset = append(unset, flagName(f))
		}
	}
	switch {
	case kind == groupOneRequired && len(set) == 0:
		return fmt.Errorf("one of %s is missing", strings.Join(unset, ", "))
	case kind == groupExclusive && len(set) > 1:
		return fmt.Errorf("%s and %s cannot be used together", strings.Join(set[:len(set)-1], ", "), set[len(set)-1])
	case kind == groupTogether && len(set) > 0 && len(unset) > 0:
		return fmt.Errorf("%s is missing: %s requires it", strings.Join(unset, ", "), set[0])
	}
	return nil
}

// flagName returns a flag as typed: its short form if it has one, except for --bundle.
func flagName(f *pflag.Flag) string {
	if f.Shorthand != "" && f.ShorthandDeprecated == "" && f.Name != "bundle" {
		return "-" + f.Shorthand
	}
	return "--" + f.Name
}

// helpCommand replaces cobra's help command, which returns no error for an unknown
// command.
func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Help about any command",
		Long:  "Print the help of a command; the same as its --help.",
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			if at, words := unknownCommand(root, args); at != nil {
				return usageError(cmd, unknownError(at, words))
			}
			sub, _, err := root.Find(args)
			if err != nil {
				return usageError(cmd, err)
			}
			sub.InitDefaultHelpFlag()
			return sub.Help()
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			sub, _, err := cmd.Root().Find(args)
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			var names []string
			for _, c := range sub.Commands() {
				if c.IsAvailableCommand() {
					names = append(names, c.Name())
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
	}
}

// requestedFormat returns json or yaml if the arguments contain such a -o, else "". It
// runs before the command line is parsed, so that errors in it are printed in that
// format too.
func requestedFormat(args []string) string {
	format := ""
	for i, arg := range args {
		switch {
		case arg == "--":
			return format
		case (arg == "-o" || arg == "--output") && i+1 < len(args):
			format = args[i+1]
		case strings.HasPrefix(arg, "--output="):
			format = strings.TrimPrefix(arg, "--output=")
		case strings.HasPrefix(arg, "-o"):
			format = strings.TrimPrefix(strings.TrimPrefix(arg, "-o"), "=")
		}
	}
	if slices.Contains([]string{"json", "yaml"}, format) {
		return format
	}
	return ""
}
