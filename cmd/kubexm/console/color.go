package console

import (
	"regexp"
	"strings"
)

// lineWords matches the prefixes of lines that are coloured.
var lineWords = regexp.MustCompile(`(?m)^(?:error|warning|note|next):`)

// colorText colours the prefixes of lines. within is set if text begins in the middle of
// a line.
func colorText(text string, within bool) string {
	begin := 0 // of the first complete line
	if within {
		if begin = strings.IndexByte(text, '\n') + 1; begin == 0 {
			return text
		}
	}
	return text[:begin] + lineWords.ReplaceAllStringFunc(text[begin:], func(word string) string {
		code := map[string]string{"error:": "31", "warning:": "33", "note:": "2", "next:": "32"}[word]
		return "\x1b[" + code + "m" + word + "\x1b[0m"
	})
}
