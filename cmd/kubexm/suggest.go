package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// unknownCommand returns the words of a command line from the first unknown command on,
// and the command that has no such subcommand; nil if all commands are known. Flags are
// not checked.
func unknownCommand(root *cobra.Command, args []string) (at *cobra.Command, words []string) {
	if len(args) > 0 && strings.HasPrefix(args[0], "__") { // cobra's hidden completion commands
		return nil, nil
	}
	at = root
	valued := valuedFlags(root)
	for i := 0; i < len(args); i++ {
		arg := args[i]
		if arg == "--" {
			break
		}
		if strings.HasPrefix(arg, "-") && len(arg) > 1 {
			if valued[arg] {
				i++
			}
			continue
		}
		if len(words) > 0 {
			words = append(words, arg)
			continue
		}
		sub := child(at, arg)
		switch {
		case sub != nil && sub.Name() == "help" && sub.Parent() == root:
			return nil, nil // help checks its arguments itself
		case sub != nil:
			at = sub
		case at.HasSubCommands():
			words = []string{arg}
		default:
			return nil, nil // an argument
		}
	}
	if len(words) == 0 {
		return nil, nil
	}
	return at, words
}

// valuedFlags returns the flags of all commands, as typed, that take the next argument
// as their value.
func valuedFlags(root *cobra.Command) map[string]bool {
	valued := map[string]bool{}
	eachCommand(root, func(cmd *cobra.Command) {
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.NoOptDefVal == "" {
				valued["--"+f.Name] = true
				valued["-"+f.Shorthand] = true
			}
		})
	})
	return valued
}

// eachCommand calls do for cmd and all its subcommands, recursively.
func eachCommand(cmd *cobra.Command, do func(*cobra.Command)) {
	do(cmd)
	for _, sub := range cmd.Commands() {
		eachCommand(sub, do)
	}
}

func child(cmd *cobra.Command, word string) *cobra.Command {
	for _, sub := range cmd.Commands() {
		if sub.Name() == word || sub.HasAlias(word) {
			return sub
		}
	}
	return nil
}

// unknownError returns the error for an unknown command, with suggestions.
func unknownError(at *cobra.Command, words []string) error {
	meant := ""
	if names := nearCommands(at, words); len(names) > 0 {
		meant = "; did you mean " + orList(names) + "?"
	}
	return fmt.Errorf("unknown command %q for %q%s", words[0], at.CommandPath(), meant)
}

// orList joins names with commas and a final "or".
func orList(names []string) string {
	last := len(names) - 1
	if last == 0 {
		return names[0]
	}
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// The costs of differences between typed words and a command. Commands are suggested up
// to costMost, and only those within costNear of the cheapest.
const (
	costOther   = 1 // another tool's name for it
	costPrefix  = 2
	costMissing = 3 // a word of the command was not typed
	costLeft    = 2 // the unknown word is not part of the command
	costGroup   = 4 // the command is in another group than the typed one
	costMost    = 6
	costNear    = 2
)

// nearCommands returns the commands that typed words may mean, the most likely first. It
// finds words in another order, joined with a dash, from other tools, or with typos.
func nearCommands(at *cobra.Command, words []string) []string {
	var typed []string
	for p := at; p.HasParent(); p = p.Parent() {
		typed = append([]string{p.Name()}, typed...)
	}
	known, end := len(typed), 0
	for i, w := range words {
		if i > 0 && strings.ContainsAny(w, "./:") { // an argument
			continue
		}
		typed = append(typed, strings.FieldsFunc(strings.ToLower(w), func(r rune) bool { return r == '-' || r == '_' })...)
		if i == 0 {
			end = len(typed)
		}
	}
	type near struct {
		path string
		cost int
	}
	var found []near
	eachCommand(at.Root(), func(cmd *cobra.Command) {
		if !cmd.HasParent() || !cmd.IsAvailableCommand() {
			return
		}
		if cost := commandCost(cmd, typed, known, end); cost <= costMost {
			if subs := cmd.Commands(); len(subs) == 1 { // a group of one: suggest its command
				cmd = subs[0]
			}
			found = append(found, near{cmd.CommandPath(), cost})
		}
	})
	slices.SortStableFunc(found, func(a, b near) int { return cmp.Compare(a.cost, b.cost) })
	var names []string
	for _, n := range found[:min(len(found), 3)] {
		if n.cost <= found[0].cost+costNear && !slices.Contains(names, n.path) {
			names = append(names, n.path)
		}
	}
	return names
}

// commandCost returns the cost of typed words for a command. The first known words are
// the group that was typed; those up to end are from the unknown word.
func commandCost(cmd *cobra.Command, typed []string, known, end int) int {
	used := make([]bool, len(typed))
	total, matched := 0, false
	for leaf := cmd; cmd.HasParent(); cmd = cmd.Parent() {
		best, at := costMissing, -1
		for i, w := range typed {
			if c := wordCost(w, cmd.Name(), cmd.Aliases, cmd.SuggestFor); !used[i] && c < best {
				best, at = c, i
			}
		}
		if at >= 0 {
			used[at] = true
			matched = matched || at >= known
		} else if cmd == leaf {
			return costMost + 1
		}
		total += best
	}
	if !matched {
		return costMost + 1
	}
	for i, u := range used {
		switch {
		case u:
		case i < known:
			total += costGroup
		case i < end:
			total += costLeft
		}
	}
	return total
}

// wordCost returns the cost of a typed word for a name; costMost+1 if they are unrelated.
func wordCost(word, name string, aliases, others []string) int {
	switch {
	case word == name || slices.Contains(aliases, word):
		return 0
	case slices.Contains(others, word):
		return costOther
	}
	if d := typos(word, name); d <= allowedTypos(name) {
		return min(d, costPrefix)
	}
	if len(word) > 1 && strings.HasPrefix(name, word) || len(name) > 2 && strings.HasPrefix(word, name) {
		return costPrefix
	}
	for _, o := range others {
		if len(o) > 3 && typos(word, o) == 1 {
			return costPrefix
		}
	}
	return costMost + 1
}

// allowedTypos returns how many typos in a name are accepted.
func allowedTypos(name string) int { return min(3, max(1, len(name)/3)) }

// typos returns the edit distance of a and b: insertions, deletions, substitutions and
// transpositions of adjacent letters.
func typos(a, b string) int {
	before, row := []int(nil), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		next := make([]int, len(b)+1)
		next[0] = i
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			next[j] = min(next[j-1]+1, row[j]+1, row[j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				next[j] = min(next[j], before[j-2]+1)
			}
		}
		before, row = row, next
	}
	return row[len(b)]
}

// flagError converts an error of pflag to kubexm's format, with suggestions.
func flagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var noValue *pflag.ValueRequiredError
	switch {
	case errors.As(err, &unknown):
		name := unknown.GetSpecifiedName()
		dashes := "--"
		if unknown.GetSpecifiedShortnames() != "" {
			dashes = "-"
		}
		err = fmt.Errorf("unknown flag: %s%s%s", dashes, name, meantFlag(cmd, name))
	case errors.As(err, &noValue):
		err = fmt.Errorf("--%s needs a value: %s", noValue.GetFlag().Name, noValue.GetFlag().Usage)
	}
	return usageError(cmd, err)
}

// meantFlag suggests flags of this command for a typed one, else the commands that have
// the flag.
func meantFlag(cmd *cobra.Command, typed string) string {
	others := flagWords()
	best, names := costMost, []string(nil)
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		c := costMost
		switch {
		case slices.Contains(others[f.Name], typed):
			c = costOther
		case len(typed) > 1:
			c = wordCost(strings.ToLower(typed), f.Name, nil, nil)
		}
		if c < best {
			best, names = c, nil
		}
		if c == best && c < costMost {
			names = append(names, longFlag(f))
		}
	})
	if len(names) > 0 {
		return "; did you mean " + orList(names[:min(len(names), 3)]) + "?"
	}
	var has []string
	eachCommand(cmd.Root(), func(c *cobra.Command) {
		if f := c.LocalFlags().Lookup(typed); f != nil && !f.Hidden && c.IsAvailableCommand() {
			has = append(has, c.CommandPath())
		}
	})
	if len(has) > 0 {
		return "; it is a flag of " + orList(has[:min(len(has), 3)])
	}
	return ""
}

func longFlag(f *pflag.Flag) string {
	if f.Name == "filename" {
		return "-f"
	}
	return "--" + f.Name
}

// oneDash returns an error for a long flag with a single dash: pflag would read -file as
// -f with the value "ile".
func oneDash(cmd *cobra.Command, args []string) error {
	known := map[string]bool{}
	eachCommand(cmd, func(c *cobra.Command) {
		c.LocalFlags().VisitAll(func(f *pflag.Flag) { known[f.Name] = true })
	})
	for _, arg := range args {
		if arg == "--" {
			return nil
		}
		name, _, _ := strings.Cut(strings.TrimPrefix(arg, "-"), "=")
		if len(name) > 2 && strings.HasPrefix(arg, "-") && !strings.HasPrefix(name, "-") && known[name] {
			return usageError(cmd, fmt.Errorf("unknown flag: -%s; did you mean --%s?", name, name))
		}
	}
	return nil
}
