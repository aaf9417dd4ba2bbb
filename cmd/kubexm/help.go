package main

import (
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

// helpWidth is how wide a help is at most: half a screen, an old terminal, a mail.
const helpWidth = 80

// narrow has every help fit its width: paragraphs are folded anew, and so are the
// texts of flags. Examples are as they were written; a test holds them.
func narrow(root *cobra.Command) {
	root.SetUsageTemplate(strings.NewReplacer(
		".LocalFlags.FlagUsages", ".LocalFlags.FlagUsagesWrapped 80",
		".InheritedFlags.FlagUsages", ".InheritedFlags.FlagUsagesWrapped 80",
	).Replace(root.UsageTemplate()))
	eachCommand(root, func(cmd *cobra.Command) { cmd.Long = foldText(cmd.Long, helpWidth) })
}

// foldText folds paragraphs to a width. A line that is indented is kept, and folded
// under the column where its second part begins; "  name   text" is such a line.
func foldText(text string, width int) string {
	var out, paragraph []string
	end := func() {
		if len(paragraph) > 0 {
			out = append(out, fold(strings.Join(paragraph, " "), width)...)
		}
		paragraph = nil
	}
	for line := range strings.SplitSeq(text, "\n") {
		switch {
		case line == "":
			end()
			out = append(out, "")
		case strings.HasPrefix(line, " "):
			end()
			out = append(out, foldItem(line, width)...)
		default:
			paragraph = append(paragraph, line)
		}
	}
	end()
	return strings.Join(out, "\n")
}

func foldItem(line string, width int) []string {
	if utf8.RuneCountInString(line) <= width {
		return []string{line}
	}
	rest := strings.TrimLeft(line, " ")
	indent := len(line) - len(rest)
	if i := strings.Index(rest, "  "); i >= 0 { // a name, and what it is
		indent += i + len(rest[i:]) - len(strings.TrimLeft(rest[i:], " "))
	}
	head := line[:indent]
	var out []string
	for i, l := range fold(line[indent:], width-utf8.RuneCountInString(head)) {
		if i > 0 {
			head = strings.Repeat(" ", utf8.RuneCountInString(head))
		}
		out = append(out, head+l)
	}
	return out
}
