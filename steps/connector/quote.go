package connector

import "strings"

// plain are the bytes that have no special meaning in any shell. It excludes the equals
// sign, which makes the first word an assignment.
const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+.,:/@%"

// Quote returns a line that a POSIX shell splits into the words of argv. All code of this
// module that passes arguments to a shell must use it. argv must not contain NUL bytes,
// see Cmd.Check.
func Quote(argv []string) string {
	var b strings.Builder
	for i, a := range argv {
		if i > 0 {
			b.WriteByte(' ')
		}
		// A first word without a slash is always quoted: it may be a reserved word such as "if".
		if a != "" && strings.Trim(a, plain) == "" && (i > 0 || strings.Contains(a, "/")) {
			b.WriteString(a)
			continue
		}
		b.WriteByte('\'')
		b.WriteString(strings.ReplaceAll(a, "'", `'\''`))
		b.WriteByte('\'')
	}
	return b.String()
}
