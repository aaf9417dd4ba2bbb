package console

import (
	"strings"
	"unicode/utf8"
)

// FoldText folds paragraphs to a width. An indented line ("  name   text") is not joined
// with others; its text is folded at the column where it begins.
func FoldText(text string, width int) string {
	var out, paragraph []string
	end := func() {
		if len(paragraph) > 0 {
			out = append(out, Fold(strings.Join(paragraph, " "), width)...)
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
	if i := strings.Index(rest, "  "); i >= 0 { // a name and its description
		indent += i + len(rest[i:]) - len(strings.TrimLeft(rest[i:], " "))
	}
	head := line[:indent]
	var out []string
	for i, l := range Fold(line[indent:], width-utf8.RuneCountInString(head)) {
		if i > 0 {
			head = strings.Repeat(" ", utf8.RuneCountInString(head))
		}
		out = append(out, head+l)
	}
	return out
}
