package rpm

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/packaging"
	"github.com/mensylisir/kubexm/packaging/rpm/rpmtest"
)

// TestRandomChoicesAreDnfs makes rpms that need and exclude each other at random,
// and asks dnf and us for sets of them. Whether a set can be installed has to be
// the same in every case. Which packages come along is a matter of taste where
// several would do; there the differences are counted.
func TestRandomChoicesAreDnfs(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds some hundred packages")
	}
	same, other, none := 0, 0, 0
	for seed := range uint64(4) {
		r := rpmtest.New(t)
		rnd := rand.New(rand.NewPCG(seed, 3))
		r.Build(t, randomSpecs(rnd)...)
		r.Run(t, "createrepo_c", "--quiet", "--no-database", "rpms")
		m, u := read(t, r.Out("rpms"))
		var requests [][]string
		for range 40 {
			var names []string
			for range 1 + rnd.IntN(3) {
				names = append(names, randomName(rnd))
			}
			slices.Sort(names)
			requests = append(requests, slices.Compact(names))
		}
		for i, dnf := range choose(t, r, "rpms", requests) {
			s, err := u.Solve(t.Context(), packaging.Request{Want: m.Want(requests[i]...)})
			var unsolvable *packaging.Unsolvable
			switch {
			case err != nil && !errors.As(err, &unsolvable):
				t.Fatal(err)
			case (err == nil) != (dnf.Error == ""):
				t.Errorf("seed %d, %q: we say %v, dnf says %q, %q", seed, requests[i], err, dnf.Error, dnf.Install)
			case err != nil:
				none++
			case slices.Equal(nevras(s.Add), dnf.Install):
				same++
			default:
				other++
				t.Logf("seed %d, %q: ours %q, dnf's %q", seed, requests[i], nevras(s.Add), dnf.Install)
			}
		}
		if t.Failed() {
			m.each(func(e *entry) {
				t.Logf("%s requires %v provides %v conflicts %v obsoletes %v", nevra(&e.Package), e.Requires, e.Provides, e.Conflicts, e.Obsoletes)
			})
		}
	}
	t.Logf("%d sets as dnf's, %d others, %d that nobody can install", same, other, none)
	if same < 60 || none < 20 || other*10 > same {
		t.Error("too few are the same, or too few are of one kind")
	}
}

func randomName(rnd *rand.Rand) string { return fmt.Sprintf("p%02d", rnd.IntN(20)) }

// randomSpecs gives spec files of the same packages in up to three versions.
func randomSpecs(rnd *rand.Rand) [][]byte {
	var out [][]byte
	operators := []string{"<", "<=", "=", ">=", ">"}
	ask := func() string {
		switch rnd.IntN(6) {
		case 0:
			return fmt.Sprintf("v%d", rnd.IntN(4))
		case 1:
			return fmt.Sprintf("%s %s %d", randomName(rnd), operators[rnd.IntN(5)], 1+rnd.IntN(3))
		case 2:
			return fmt.Sprintf("v%d %s %d-%d", rnd.IntN(4), operators[rnd.IntN(5)], 1+rnd.IntN(3), 1+rnd.IntN(2))
		case 3:
			return fmt.Sprintf("/usr/bin/%s", randomName(rnd))
		}
		return randomName(rnd)
	}
	rich := func() string {
		a, b, c := ask(), ask(), ask()
		return []string{
			fmt.Sprintf("(%s or %s)", a, b), fmt.Sprintf("(%s and %s)", a, b), fmt.Sprintf("(%s if %s)", a, b),
			fmt.Sprintf("(%s if %s else %s)", a, b, c), fmt.Sprintf("(%s or (%s and %s))", a, b, c), fmt.Sprintf("(v1 with %s)", b), fmt.Sprintf("(v2 without %s)", b),
		}[rnd.IntN(7)]
	}
	for version := 1; version <= 3; version++ {
		var b strings.Builder
		fmt.Fprintf(&b, "Name: head\nVersion: %d\nRelease: 1\nSummary: x\nLicense: none\nBuildArch: noarch\n%%description\nx\n", version)
		var files []string
		for n := range 20 {
			if version > 1 && rnd.IntN(version) > 0 {
				continue
			}
			name := fmt.Sprintf("p%02d", n)
			fmt.Fprintf(&b, "%%package -n %s\nSummary: x\nRelease: %d\n", name, 1+rnd.IntN(3))
			for rnd.IntN(5) < 3 {
				fmt.Fprintf(&b, "Requires: %s\n", ask())
			}
			if rnd.IntN(3) == 0 {
				fmt.Fprintf(&b, "Requires: %s\n", rich())
			}
			switch rnd.IntN(4) {
			case 0:
				fmt.Fprintf(&b, "Provides: v%d = %d\n", rnd.IntN(4), 1+rnd.IntN(3))
			case 1:
				fmt.Fprintf(&b, "Provides: v%d\n", rnd.IntN(4))
			}
			if rnd.IntN(6) == 0 {
				fmt.Fprintf(&b, "Conflicts: %s\n", ask())
			}
			if rnd.IntN(12) == 0 {
				fmt.Fprintf(&b, "Obsoletes: %s < %d\n", randomName(rnd), 1+rnd.IntN(4))
			}
			fmt.Fprintf(&b, "%%description -n %s\nx\n%%files -n %s\n", name, name)
			if n%2 == 0 {
				files = append(files, "/usr/bin/"+name)
				fmt.Fprintf(&b, "/usr/bin/%s\n", name)
			}
		}
		fmt.Fprintf(&b, "%%prep\n%%build\n%%install\nmkdir -p %%{buildroot}/usr/bin\n")
		for _, f := range files {
			fmt.Fprintf(&b, "echo x > %%{buildroot}%s\n", f)
		}
		out = append(out, []byte(b.String()))
	}
	return out
}
