package packaging

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// whole compares versions that are whole numbers.
func whole(a, b string) int {
	x, _ := strconv.Atoi(a)
	y, _ := strconv.Atoi(b)
	return x - y
}

// relation reads "a", "a >= 2".
func relation(s string) Relation {
	f := strings.Fields(s)
	if len(f) == 3 {
		return Relation{Name: f[0], Operator: Operator(f[1]), Version: f[2]}
	}
	return Relation{Name: f[0]}
}

// requirement reads "a | b >= 2", "a if b", "not a and b".
func requirement(s string) Requirement {
	var q Requirement
	s, condition, _ := strings.Cut(s, " if ")
	if rest, ok := strings.CutPrefix(s, "not "); ok {
		s, condition = "", rest
	}
	for _, x := range strings.Split(s, " | ") {
		if x != "" {
			q.Any = append(q.Any, relation(x))
		}
	}
	if condition != "" {
		for _, x := range strings.Split(condition, " and ") {
			q.If = append(q.If, relation(x))
		}
	}
	return q
}

// world reads a line for each package: "a 1; base; needs b | c >= 2, d; provides e; conflicts f; obsoletes g".
func world(t *testing.T, lines string) *Universe {
	t.Helper()
	var all []*Package
	for line := range strings.Lines(lines) {
		if strings.TrimSpace(line) == "" {
			continue
		}
		parts := strings.Split(strings.TrimSpace(line), "; ")
		name, version, _ := strings.Cut(parts[0], " ")
		p := &Package{Name: name, Version: version, Arch: "all"}
		for _, part := range parts[1:] {
			word, list, _ := strings.Cut(part, " ")
			for _, x := range strings.Split(list, ", ") {
				switch word {
				case "base":
					p.Base = true
				case "needs":
					p.Requires = append(p.Requires, requirement(x))
				case "provides":
					p.Provides = append(p.Provides, relation(x))
				case "conflicts":
					p.Conflicts = append(p.Conflicts, relation(x))
				case "obsoletes":
					p.Obsoletes = append(p.Obsoletes, relation(x))
				default:
					t.Fatalf("%q", part)
				}
			}
		}
		all = append(all, p)
	}
	return NewUniverse(whole, all)
}

func wanted(list string) Request {
	var r Request
	for _, x := range strings.Split(list, ", ") {
		r.Want = append(r.Want, requirement(x))
	}
	return r
}

func named(all []*Package) string {
	var out []string
	for _, p := range all {
		out = append(out, p.Name+" "+p.Version)
	}
	return strings.Join(out, ", ")
}

func TestSolve(t *testing.T) {
	for _, c := range []struct{ name, world, want, got string }{
		{"alone", "a 1", "a", "a 1"},
		{"what it needs", "a 1; needs b\nb 1; needs c\nc 1\nd 1", "a", "a 1, b 1, c 1"},
		{"a circle", "a 1; needs b\nb 1; needs a", "a", "a 1, b 1"},
		{"the latest", "a 1\na 3\na 2", "a", "a 3"},
		{"a version asked for", "a 1\na 3\na 2", "a < 3", "a 2"},
		{"no later one than another admits", "a 1\na 2\nb 1; needs a <= 1", "a, b", "a 1, b 1"},
		{"the first named", "a 1; needs b | c\nb 1\nc 1", "a", "a 1, b 1"},
		{"the second where it is there anyway", "a 1; needs b | c\nb 1\nc 1", "c, a", "a 1, c 1"},
		{"the second where the first cannot be", "a 1; needs b | c\nb 1; needs nothing-of-it\nc 1", "a", "a 1, c 1"},
		{"the second where the first may not be", "a 1; needs b | c\nb 1; conflicts d\nc 1\nd 1", "a, d", "a 1, c 1, d 1"},
		{"back on a choice deep down", "a 1; needs b | c\nb 1; needs d\nd 1; needs e | f\ne 1; conflicts g\nf 1; conflicts g\nc 1\ng 1", "a, g", "a 1, c 1, g 1"},
		{"provided", "a 1; needs v\nb 1; provides v", "a", "a 1, b 1"},
		{"by its own name before provided", "a 1; needs v\nb 1; provides v\nv 1", "a", "a 1, v 1"},
		{"provided without a version is none", "a 1; needs v >= 1 | c\nb 1; provides v\nc 1", "a", "a 1, c 1"},
		{"provided with a version", "a 1; needs v >= 2\nb 1; provides v = 2", "a", "a 1, b 1"},
		{"conflict with what it provides itself", "a 1; provides v; conflicts v", "a", "a 1"},
		{"only where another is there", "a 1; needs b if c\nb 1\nc 1", "a", "a 1"},
		{"where another is there", "a 1; needs b if c\nb 1\nc 1", "a, c", "a 1, b 1, c 1"},
		{"where another comes later", "a 1; needs b if c, d\nb 1\nc 1\nd 1; needs c", "a", "a 1, b 1, c 1, d 1"},
		{"where two others are there", "a 1; needs b if c and d\nb 1\nc 1\nd 1", "a, c", "a 1, c 1"},
		{"not beside two others, but one", "a 1; needs not b and c\nb 1\nc 1", "a, b", "a 1, b 1"},
		{"not beside another, so that comes another", "a 1; needs not b; needs b | c\nb 1\nc 1", "a", "a 1, c 1"},
		{"what is wanted before what that needs", "a 1; needs v\nb 1; provides v\nb 2\nc 1; provides v", "a, b", "a 1, b 2, c 1"},
		{"obsoletes by name", "a 1; obsoletes v\nb 1; provides v", "a, b", "a 1, b 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := world(t, c.world).Solve(t.Context(), wanted(c.want))
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.got, named(s.Add)); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestFamily asks a family's own rule for what meets what.
func TestFamily(t *testing.T) {
	packages := world(t, "a 1; needs v >= 7\nb 1; provides v").packages
	if _, err := NewUniverse(whole, packages).Solve(t.Context(), wanted("a")); err == nil {
		t.Error("a name without a version met a question for one")
	}
	u := Family{Compare: whole, Meets: func(provided, asked Relation) bool { return provided.Operator == AnyVersion }}.Universe(packages)
	s, err := u.Solve(t.Context(), Request{Want: []Requirement{requirement("v")}})
	if err != nil || named(s.Add) != "b 1" {
		t.Errorf("%v, %v", s, err)
	}
}

// TestFamilyOrder has a family want what comes later in the alphabet.
func TestFamilyOrder(t *testing.T) {
	packages := world(t, "a 1; needs b | d | c\nb 1\nc 1\nd 1\ne 1; needs v\nf 1; provides v\ngg 1; provides v").packages
	backwards := func(all []*Package) {
		slices.SortFunc(all, func(a, b *Package) int { return strings.Compare(b.Name, a.Name) })
	}
	for _, c := range []struct{ want, got string }{
		{"a", "a 1, d 1"}, {"a, c", "a 1, c 1"}, {"c, a", "a 1, c 1"}, {"e", "e 1, gg 1"},
	} {
		s, err := Family{Compare: whole, Order: backwards}.Universe(packages).Solve(t.Context(), wanted(c.want))
		if err != nil || named(s.Add) != c.got {
			t.Errorf("%s: %v, %v", c.want, named(s.Add), err)
		}
	}
}

// TestOwn asks for a package by its own name, and by a name that others provide.
func TestOwn(t *testing.T) {
	u := world(t, "a 1; needs nothing\nb 1; provides a\nc 1; provides a = 2")
	for own, want := range map[bool]string{true: "a 1", false: "a 1, b 1, c 1"} {
		if got := named(u.Find(Relation{Name: "a", Own: own})); got != want {
			t.Errorf("own %v: %s", own, got)
		}
	}
	if _, err := u.Solve(t.Context(), Request{Want: []Requirement{{Any: []Relation{{Name: "a", Own: true}}}}}); err == nil {
		t.Error("what provides the name was taken")
	}
}

// TestFamilyFewest has a choice turn out needless.
func TestFamilyFewest(t *testing.T) {
	for _, c := range []struct{ world, want, all, fewest string }{
		{"a 1; needs b | c\nb 1; needs c, d\nc 1\nd 1", "a", "a 1, b 1, c 1, d 1", "a 1, c 1"},
		{"a 1; needs b | c; needs d\nb 1; needs c\nc 1\nd 1; needs b", "a", "a 1, b 1, c 1, d 1", "a 1, b 1, c 1, d 1"},
		{"a 1; needs b | c\nb 1; needs c\nc 1", "a, b", "a 1, b 1, c 1", "a 1, b 1, c 1"},
		{"a 1; needs b | c; needs e if d\nb 1; needs c, d\nc 1\nd 1\ne 1", "a", "a 1, b 1, c 1, d 1, e 1", "a 1, c 1"},
		{"a 1; needs b | c\nb 1; needs c | d; needs d | e; needs e\nc 1\nd 1\ne 1", "a", "a 1, b 1, c 1, e 1", "a 1, c 1"},
	} {
		packages := world(t, c.world).packages
		for fewest, want := range map[bool]string{false: c.all, true: c.fewest} {
			s, err := Family{Compare: whole, DropRedundant: fewest}.Universe(packages).Solve(t.Context(), wanted(c.want))
			if err != nil || named(s.Add) != want {
				t.Errorf("%s: fewest %v: %v, not %s, %v", c.want, fewest, named(s.Add), want, err)
			}
		}
	}
}

func TestSolveBesideTheBase(t *testing.T) {
	u := world(t, "libc 1; base\nshell 1; base; needs libc, tty | screen\ntty 1\nscreen 1\na 1; needs libc >= 1, b | tty\nb 1")
	base, err := u.BaseClosure(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff("libc 1, shell 1, tty 1", named(base)); d != "" {
		t.Error(d)
	}
	r := wanted("a")
	r.Installed = base
	s, err := u.Solve(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"a 1", "libc 1, tty 1"}, []string{named(s.Add), named(s.Held)}); d != "" {
		t.Error(d)
	}
}

func TestUnsolvable(t *testing.T) {
	for _, c := range []struct {
		name, world, want string
		chain             []string
	}{
		{"nothing of it", "a 1; needs b\nb 1; needs c >= 2\nc 1", "a", []string{
			"requested: a", "a 1 (all) requires b, which only b 1 (all) provides", "b 1 (all) requires c (>= 2), which no package provides (available: c 1 (all))"}},
		{"a conflict", "a 1; needs b\nb 1; conflicts d\nc 1; needs d\nd 1\ne 1", "e, a, c", []string{
			"requested: a", "a 1 (all) requires b, which only b 1 (all) provides", "requested: c", "c 1 (all) requires d, which only d 1 (all) provides",
			"b 1 (all) cannot be installed with d 1 (all): it conflicts with d"}},
		{"two versions", "a 1; needs c = 1\nb 1; needs c = 2\nc 1\nc 2", "a, b", []string{
			"requested: a", "a 1 (all) requires c (= 1), which only c 1 (all) provides", "requested: b", "b 1 (all) requires c (= 2), which only c 2 (all) provides",
			"only one of c 1 (all) and c 2 (all) can be installed"}},
		{"whichever way", "a 1; needs b | c\nb 1; conflicts d\nc 1; conflicts d\nd 1", "a, d", []string{
			"requested: a", "a 1 (all) requires b | c", "requested: d",
			"b 1 (all) cannot be installed with d 1 (all): it conflicts with d", "c 1 (all) cannot be installed with d 1 (all): it conflicts with d"}},
		{"not beside two others", "a 1; needs not b and c\nb 1\nc 1", "a, b, c", []string{
			"requested: a", "a 1 (all) requires not (b and c)", "requested: b", "requested: c"}},
		{"with the base", "a 1; conflicts libc\nlibc 1; base", "a", []string{
			"requested: a", "a 1 (all) cannot be installed with libc 1 (all): it conflicts with libc", "libc 1 (all) is part of every installation"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			u := world(t, c.world)
			base, err := u.BaseClosure(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			r := wanted(c.want)
			r.Installed = base
			_, err = u.Solve(t.Context(), r)
			var e *Unsolvable
			if !errors.As(err, &e) {
				t.Fatalf("%v", err)
			}
			if d := cmp.Diff(c.chain, e.Chain); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestUnknown(t *testing.T) {
	_, err := world(t, "socat 1\nconntrack 1").Solve(t.Context(), wanted("socot, conntrack >= 2, nothing-like-it, socat"))
	want := "no repository has the package socot; available: socat\n" +
		"no repository has the package conntrack (>= 2); available: conntrack 1 (all)\n" +
		"no repository has the package nothing-like-it"
	if err == nil || err.Error() != want {
		t.Errorf("%v", err)
	}
}

// TestAgainstEveryChoice holds the search against trying all sets of packages.
func TestAgainstEveryChoice(t *testing.T) {
	solved, unsolved, fewer := 0, 0, 0
	for seed := range uint64(3000) {
		u, r := randomWorld(rand.New(rand.NewPCG(seed, 1)))
		s, err := u.Solve(t.Context(), r)
		possible := false
		for set := 0; set < 1<<len(u.packages) && !possible; set++ {
			possible = stands(u, r, func(p *Package) bool { return set>>slices.Index(u.packages, p)&1 == 1 })
		}
		if possible != (err == nil) {
			t.Fatalf("seed %d: possible %v, but %v\n%s", seed, possible, err, describe(u, r))
		}
		if err != nil {
			unsolved++
			continue
		}
		solved++
		all := append(slices.Clone(s.Add), r.Installed...)
		if !stands(u, r, func(p *Package) bool { return slices.Contains(all, p) }) {
			t.Fatalf("seed %d: %s does not stand\n%s", seed, named(all), describe(u, r))
		}
		again, err := u.Solve(t.Context(), r)
		if err != nil || named(again.Add) != named(s.Add) {
			t.Fatalf("seed %d: then %s, now %v", seed, named(s.Add), err)
		}
		few, err := Family{Compare: whole, DropRedundant: true}.Universe(u.packages).Solve(t.Context(), r)
		if err != nil || len(few.Add) > len(s.Add) {
			t.Fatalf("seed %d: first %s, fewest %v", seed, named(s.Add), err)
		}
		all = append(slices.Clone(few.Add), r.Installed...)
		if !stands(u, r, func(p *Package) bool { return slices.Contains(all, p) }) {
			t.Fatalf("seed %d: the fewest, %s, do not stand\n%s", seed, named(all), describe(u, r))
		}
		if len(few.Add) < len(s.Add) {
			fewer++
		}
	}
	if solved < 500 || unsolved < 500 || fewer < 10 {
		t.Errorf("%d solved, %d not, %d with fewer: too few of one", solved, unsolved, fewer)
	}
}

// stands reports whether a set of packages meets a request.
func stands(u *Universe, r Request, in func(*Package) bool) bool {
	met := func(x Relation) bool { return slices.ContainsFunc(u.Find(x), in) }
	holds := func(q Requirement) bool {
		for _, x := range q.If {
			if !met(x) {
				return true
			}
		}
		return slices.ContainsFunc(q.Any, met)
	}
	for _, p := range r.Installed {
		if !in(p) {
			return false
		}
	}
	for _, q := range r.Want {
		if !holds(q) {
			return false
		}
	}
	names := map[string]bool{}
	for _, p := range u.packages {
		if !in(p) {
			continue
		}
		if names[p.Name] {
			return false
		}
		names[p.Name] = true
		for _, q := range p.Requires {
			if !holds(q) {
				return false
			}
		}
		for _, x := range p.Conflicts {
			if slices.ContainsFunc(u.Find(x), func(y *Package) bool { return y.Name != p.Name && in(y) }) {
				return false
			}
		}
		for _, x := range p.Obsoletes {
			if slices.ContainsFunc(u.Find(x), func(y *Package) bool { return y.Name == x.Name && y.Name != p.Name && in(y) }) {
				return false
			}
		}
	}
	return true
}

func randomWorld(rnd *rand.Rand) (*Universe, Request) {
	names := []string{"a", "b", "c", "d", "e", "f", "v"}
	pick := func() Relation {
		x := Relation{Name: names[rnd.IntN(len(names))]}
		if rnd.IntN(3) == 0 {
			x.Operator, x.Version = []Operator{Earlier, AtMost, Exactly, AtLeast, Later}[rnd.IntN(5)], strconv.Itoa(1+rnd.IntN(3))
		}
		return x
	}
	need := func() Requirement {
		var q Requirement
		for range 1 + rnd.IntN(3) {
			q.Any = append(q.Any, pick())
		}
		for rnd.IntN(4) == 0 {
			q.If = append(q.If, pick())
		}
		return q
	}
	var all []*Package
	for range 4 + rnd.IntN(6) {
		p := &Package{Name: names[rnd.IntN(6)], Version: strconv.Itoa(1 + rnd.IntN(3)), Arch: "all"}
		if slices.ContainsFunc(all, func(x *Package) bool { return x.Name == p.Name && x.Version == p.Version }) {
			continue
		}
		for range rnd.IntN(3) {
			p.Requires = append(p.Requires, need())
		}
		for rnd.IntN(2) == 0 {
			p.Conflicts = append(p.Conflicts, pick())
		}
		if rnd.IntN(5) == 0 {
			p.Obsoletes = append(p.Obsoletes, Relation{Name: names[rnd.IntN(6)]})
		}
		if rnd.IntN(3) == 0 {
			p.Provides = append(p.Provides, Relation{Name: "v", Operator: Exactly, Version: strconv.Itoa(1 + rnd.IntN(3))})
		}
		all = append(all, p)
	}
	u := NewUniverse(whole, all)
	var r Request
	for range 1 + rnd.IntN(3) {
		p := all[rnd.IntN(len(all))]
		q := Requirement{Any: []Relation{{Name: p.Name}}}
		if rnd.IntN(3) == 0 {
			q = need()
			q.Any = append(q.Any, Relation{Name: p.Name}) // so that it is known
		}
		r.Want = append(r.Want, q)
	}
	if rnd.IntN(3) == 0 {
		r.Installed = []*Package{all[rnd.IntN(len(all))]}
	}
	return u, r
}

func describe(u *Universe, r Request) string {
	var b strings.Builder
	for _, p := range u.packages {
		fmt.Fprintf(&b, "%s needs %v provides %v conflicts %v obsoletes %v\n", p, p.Requires, p.Provides, p.Conflicts, p.Obsoletes)
	}
	fmt.Fprintf(&b, "wanted %v, there %v", r.Want, r.Installed)
	return b.String()
}

func TestSolveIsInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := world(t, "a 1").Solve(ctx, wanted("a")); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
