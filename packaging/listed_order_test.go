package packaging

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestInTurn has the order decide where what is certain would decide otherwise.
func TestInTurn(t *testing.T) {
	for _, c := range []struct{ world, want, certain, inTurn string }{
		{"a 1; needs l, r\nl 1\nr 1; provides l", "a", "a 1, r 1", "a 1, l 1, r 1"},
		{"a 1; needs r, l\nl 1\nr 1; provides l", "a", "a 1, r 1", "a 1, r 1"},
		{"a 1; needs l\nl 1\nr 1; provides l", "a, r", "a 1, r 1", "a 1, r 1"},
		{"a 1; needs b, l\nb 1; needs r\nl 1\nr 1; provides l", "a", "a 1, b 1, r 1", "a 1, b 1, r 1"},
		{"a 1; needs l, r\nl 1; conflicts r\nr 1; provides l", "a", "a 1, r 1", "a 1, r 1"},
		{"a 1; needs v\nlong 1; provides v\nb 1; provides v", "a", "a 1, b 1", "a 1, long 1"},
		{"a 1; needs b | c\nb 1; needs d\nc 1\nd 1; conflicts a", "a", "a 1, c 1", "a 1, c 1"},
	} {
		packages := world(t, c.world).packages
		for inTurn, want := range map[bool]string{false: c.certain, true: c.inTurn} {
			s, err := Family{Compare: whole, InListedOrder: inTurn}.Universe(packages).Solve(t.Context(), wanted(c.want))
			if err != nil || named(s.Add) != want {
				t.Errorf("%q: in turn %v: %v, not %s, %v", c.world, inTurn, s, want, err)
			}
		}
	}
}

// TestInTurnByName: who wants a package by its name gets it, though one that is
// there provides the name, as long as it can be there.
func TestInTurnByName(t *testing.T) {
	for _, c := range []struct{ world, want, add string }{
		{"p 1; base; provides l\nl 1", "l", "l 1"},
		{"p 1; base; provides l\nl 1", "p", ""},
		{"p 1; base; provides l\nl 1; conflicts p", "l", ""},
		{"p 1; base; provides l\nl 1\na 1; needs l", "a", "a 1"},
		{"p 1; provides l\nl 1", "p, l", "l 1, p 1"},
	} {
		u := Family{Compare: whole, InListedOrder: true}.Universe(world(t, c.world).packages)
		base, err := u.BaseClosure(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		r := wanted(c.want)
		r.Installed = base
		s, err := u.Solve(t.Context(), r)
		if err != nil || named(s.Add) != c.add {
			t.Errorf("%q: %s: %v, not %q, %v", c.world, c.want, s, c.add, err)
		}
	}
}

// TestInTurnAgainstEveryChoice: in whatever order it is gone about, there is a
// solution or there is none.
func TestInTurnAgainstEveryChoice(t *testing.T) {
	solved, other := 0, 0
	for seed := range uint64(1500) {
		u, r := randomWorld(rand.New(rand.NewPCG(seed, 2)))
		s, err := u.Solve(t.Context(), r)
		again, inTurnErr := Family{Compare: whole, InListedOrder: true}.Universe(u.packages).Solve(t.Context(), r)
		if (err == nil) != (inTurnErr == nil) {
			t.Fatalf("seed %d: %v, and in turn %v\n%s", seed, err, inTurnErr, describe(u, r))
		}
		if err != nil {
			continue
		}
		solved++
		if named(s.Add) != named(again.Add) {
			other++
		}
		all := append(slices.Clone(again.Add), r.Installed...)
		if !stands(u, r, func(p *Package) bool { return slices.Contains(all, p) }) {
			t.Fatalf("seed %d: %s does not stand\n%s", seed, named(all), describe(u, r))
		}
	}
	if solved < 200 || other < 5 {
		t.Errorf("%d solved, %d in another way: too few", solved, other)
	}
}
