package connector_test

import (
	"bytes"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/steps/connector"
)

func TestQuote(t *testing.T) {
	for _, c := range []struct {
		argv []string
		want string
	}{
		{[]string{"/bin/true"}, "/bin/true"},
		{[]string{"ls", "-l", "/etc/os-release"}, "'ls' -l /etc/os-release"},
		{[]string{"if", "x"}, "'if' x"},
		{[]string{"A=b", "c=d"}, "'A=b' 'c=d'"},
		{[]string{"/x", "", " ", "it's", "$HOME", "~", "*", "a\nb"}, "/x '' ' ' 'it'\\''s' '$HOME' '~' '*' 'a\nb'"},
	} {
		if got := connector.Quote(c.argv); got != c.want {
			t.Errorf("Quote(%q) = %s, want %s", c.argv, got, c.want)
		}
	}
}

// FuzzQuote has a real shell split the line again.
func FuzzQuote(f *testing.F) {
	for _, s := range []string{"", "a b", "it's", "'", "''", `\`, `\'`, "$(id)", "`id`", "a\nb", "\n", "!x", "#", "~root", "*", "{a,b}", "=", "\xff\xfe", "-n", "a;b|c&d", "if"} {
		f.Add(s, "second")
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		if strings.ContainsRune(a+b, 0) || len(a)+len(b) > 1<<16 {
			return // Cmd.Check refuses NUL
		}
		want := []string{"/usr/bin/printf", "%s\\0", a, b}
		out, err := exec.Command("/bin/sh", "-c", connector.Quote(want)).Output()
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00"); !slices.Equal(got, []string{a, b}) {
			t.Fatalf("%q and %q came back as %q", a, b, got)
		}
	})
}

// TestQuoteFirstWord: the name of a program is never a word of the shell's.
func TestQuoteFirstWord(t *testing.T) {
	for _, word := range []string{"if", "then", "{", "!", "A=b", "case", "~", "."} {
		var errs bytes.Buffer
		cmd := exec.Command("/bin/sh", "-c", connector.Quote([]string{word, "x"}))
		cmd.Stderr = &errs
		_ = cmd.Run()
		if strings.Contains(errs.String(), "Syntax error") || word != "." && word != "~" && !strings.Contains(errs.String(), "not found") {
			t.Errorf("%q: the shell says %q", word, errs.String())
		}
	}
}
