package connector_test

import (
	"bytes"
	"maps"
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

// shells are those of this machine that a host's login may have, each with the
// arguments before its line. POSIX asks for sh alone.
func shells(t testing.TB) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	for name, argv := range map[string][]string{
		"sh": {"sh", "-c"}, "dash": {"dash", "-c"}, "bash": {"bash", "-c"}, "bash as sh": {"bash", "--posix", "-c"},
		"ksh": {"ksh", "-c"}, "zsh": {"zsh", "-c"}, "busybox": {"busybox", "sh", "-c"},
	} {
		if _, err := exec.LookPath(argv[0]); err == nil {
			found[name] = argv
		}
	}
	if found["sh"] == nil {
		t.Fatal("this machine has no sh")
	}
	return found
}

// FuzzQuote has real shells split the line again, each one that is here.
func FuzzQuote(f *testing.F) {
	for _, s := range []string{"", "a b", "it's", "'", "''", `\`, `\'`, "$(id)", "`id`", "a\nb", "\n", "!x", "!!", "#", "~root", "*", "{a,b}", "=", "=ls", "\xff\xfe", "-n", "a;b|c&d", "if", "a\\", "\r\n", "$'x'", "é", "[a-z]?", "a=~b", "%1", "^x^y^"} {
		f.Add(s, "second")
	}
	all := shells(f)
	f.Logf("shells: %v", slices.Sorted(maps.Keys(all)))
	f.Fuzz(func(t *testing.T, a, b string) {
		if strings.ContainsRune(a+b, 0) || len(a)+len(b) > 1<<16 {
			return // Cmd.Check refuses NUL
		}
		line := connector.Quote([]string{"/usr/bin/printf", "%s\\0", a, b})
		for name, shell := range all {
			out, err := exec.Command(shell[0], append(slices.Clone(shell[1:]), "exec "+line)...).Output()
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if got := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00"); !slices.Equal(got, []string{a, b}) {
				t.Fatalf("%s: %q and %q came back as %q", name, a, b, got)
			}
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
