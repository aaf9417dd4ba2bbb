package console

import (
	"regexp"
	"strings"
)

// lineWords are the words that begin a line which is coloured, and their colours.
var lineWords = regexp.MustCompile(`(?m)^(?:error|warning|note|next):`)

// colorText colours the words that say of what kind a line is. within says that text
// goes on in the middle of a line.
func colorText(text string, within bool) string {
	begin := 0 // of what may be coloured
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
