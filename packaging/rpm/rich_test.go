package rpm

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mensylisir/kubexm/packaging"
)

func lines(all []packaging.Requirement) []string {
	var out []string
	for _, q := range all {
		out = append(out, q.String())
	}
	return out
}

func TestRich(t *testing.T) {
	for _, c := range []struct {
		text               string
		required, excluded []string
	}{
		{"(a)", []string{"a"}, []string{"not (a)"}},
		{"(a or b)", []string{"a | b"}, []string{"not (a)", "not (b)"}},
		{"(a and b)", []string{"a", "b"}, []string{"not (a and b)"}},
		{"(a and b and c >= 1:2-3)", []string{"a", "b", "c (>= 1:2-3)"}, []string{"not (a and b and c (>= 1:2-3))"}},
		{"(a if b)", []string{"a if b"}, []string{"not (a)", "b"}},
		{"(a if b else c)", []string{"a if b", "c | b"}, []string{"not (a and c)", "not (a and b)", "b if c"}},
		{"(a unless b)", []string{"a", "not (b)"}, []string{"b if a"}},
		{"(a unless b else c)", []string{"a | c", "a | b", "c if b"}, []string{"b if a", "not (c and b)"}},
		{"(a with b)", []string{"a with b"}, []string{"not (a with b)"}},
		{"(a with b with c < 2)", []string{"a with b with c (< 2)"}, nil},
		{"(a without b)", []string{"a without b"}, nil},
		{"(a with (b or c))", []string{"a with b | a with c"}, []string{"not (a with b)", "not (a with c)"}},
		{"((a or b) without (c or d))", []string{"a without c without d | b without c without d"}, nil},
		{"((a and b) or c)", []string{"a | c", "b | c"}, []string{"not (a and b)", "not (c)"}},
		{"((a if b) and (c or (d and e)))", []string{"a if b", "c | d", "c | e"}, nil},
		{"(libc.so.6(GLIBC_2.4)(64bit) or perl(A::B) = 1)", []string{"libc.so.6(GLIBC_2.4)(64bit) | perl(A::B) (= 1)"}, nil},
		{" ( a   or\tb >=2 ) ", []string{"a | b (>= 2)"}, nil},
		{"(/usr/bin/a or b=1)", []string{"/usr/bin/a | b=1"}, nil}, // without blanks it is a name, as rpm has it
	} {
		t.Run(c.text, func(t *testing.T) {
			e, err := parseRich(c.text)
			if err != nil {
				t.Fatal(err)
			}
			for negate, want := range map[bool][]string{false: c.required, true: c.excluded} {
				got, err := e.clauses(negate)
				if err != nil {
					t.Fatal(err)
				}
				if d := cmp.Diff(want, lines(got)); d != "" && want != nil {
					t.Errorf("negated %v: %s", negate, d)
				}
			}
		})
	}
}

func TestRichIsRefused(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", "does not begin with a bracket"}, {"a or b", "does not begin with a bracket"}, {"(a or b", "closing bracket is missing"}, {"(a or b) c", "unexpected"},
		{"()", "a name is missing"}, {"(a or )", "a name is missing"}, {"(a xor b)", `unknown operator "xor"`}, {"(a or b and c)", `"and" cannot come after "or"`},
		{"(a if b if c)", `"if" cannot come after "if"`}, {"(a else b)", `"else" cannot come after ""`}, {"(a if b else c else d)", `"else" cannot come after`},
		{"(a >= or b)", `unknown operator "b"`}, {"(a >=)", "a version is missing"}, {"(a <> 1)", `unknown operator "<>"`},
		{strings.Repeat("(", 100) + "a" + strings.Repeat(")", 100), "too complex"}, {"(" + strings.Repeat("a or ", 20000) + "a)", "too complex"},
	} {
		if _, err := parseRich(c.text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.40q: %v, not %s", c.text, err, c.want)
		}
	}
	for _, text := range []string{"((a and b) with c)", "((a if b) without c)"} {
		e, err := parseRich(text)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := e.clauses(false); err == nil {
			t.Errorf("%s: no error", text)
		}
	}
	// Each "or" of two "and" doubles what has to hold.
	e, err := parseRich("(" + strings.Repeat("(a and b) or ", 20) + "c)")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.clauses(false); err == nil {
		t.Error("a million clauses are no error")
	}
}

func FuzzRich(f *testing.F) {
	for _, s := range []string{"(a or b)", "(a if b else (c with d >= 1))", "((a unless b) and c)", "(a without (b or c))", "(a", "(()"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		e, err := parseRich(s)
		if err != nil {
			return
		}
		for _, negate := range []bool{false, true} {
			all, err := e.clauses(negate)
			if err == nil && len(all) > maxRichClauses {
				t.Errorf("%d clauses", len(all))
			}
		}
	})
}
