package packaging

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestCarry: what goes with one patch level of a base alone comes along, and what of
// the base goes with that; the rest is named as left out.
func TestCarry(t *testing.T) {
	const base = `libc 2-1; base
libc-bin 2-1; base; needs libc = 2-1
perl-base 5-1; base; needs libc >= 2
tinfo 6-4; base
ncurses 6-4; base; needs tinfo >= 6-4
pam-bin 1-3; base; needs pam = 1-3
pam 1-3; base; needs libc, pam-bin = 1-3 | pam-other
`
	for _, x := range []struct{ name, lines, along, left string }{
		{"any version does", "app 1-1; needs libc >= 2, perl-base", "", "libc 2-1, perl-base 5-1"},
		{"just one does", "app 1-1; needs perl-base = 5-1", "perl-base 5-1", "libc 2-1"},
		{"of what comes along too", "app 1-1; needs libc = 2-1", "libc 2-1, libc-bin 2-1", ""},
		{"this patch level or a later one", "app 1-1; needs tinfo >= 6-2", "tinfo 6-4", ""},
		{"but not who would do with that", "app 1-1; needs tinfo = 6-4", "tinfo 6-4", ""},
		{"one of two would do in any version", "app 1-1; needs perl-base = 5-1 | libc", "", "libc 2-1"},
		{"in a circle", "app 1-1; needs pam-bin = 1-3", "pam 1-3, pam-bin 1-3", "libc 2-1"},
		{"one after the other", "app 1-1; needs lib = 1-1\nlib 1-1; needs perl-base = 5-1", "perl-base 5-1", "libc 2-1"},
		{"at most", "app 1-1; needs libc <= 2-1", "", "libc 2-1"},
	} {
		u := NewUniverse(strings.Compare, world(t, base+x.lines).packages)
		installed, err := u.BaseClosure(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		s, err := u.Solve(t.Context(), Request{Want: []Requirement{requirement("app")}, Installed: installed})
		if err != nil {
			t.Fatal(err)
		}
		along, left := u.SelectBase(s, installed)
		for _, c := range []struct {
			want string
			have []*Package
		}{{x.along, along}, {x.left, left}} {
			var names []string
			for _, p := range c.have {
				names = append(names, p.Name+" "+p.Version)
			}
			if d := cmp.Diff(c.want, strings.Join(names, ", ")); d != "" {
				t.Errorf("%s: %s", x.name, d)
			}
		}
	}
}
