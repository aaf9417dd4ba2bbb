package connector

import "strings"

// plain are the bytes that mean themselves to every shell. The equals sign is
// not among them: in the first word it would make an assignment.
const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+.,:/@%"

// Quote makes one line of argv that a POSIX shell splits into the same words
// again. It is the only way in this module from arguments to a shell. argv holds
// no NUL bytes: Cmd.Check sees to that.
func Quote(argv []string) string {
	var b strings.Builder
	for i, a := range argv {
		if i > 0 {
			b.WriteByte(' ')
		}
		// A first word without a slash is quoted always: "if" and "case" are words of the shell's.
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
