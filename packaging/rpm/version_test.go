package rpm

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/packaging"
	"github.com/mensylisir/kubexm/packaging/rpm/rpmtest"
)

// versionPairs are of rpm's own tests/rpmvercmp.at, in the order of rpm, and some
// with epochs and releases.
var versionPairs = []struct {
	a, b string
	want int
}{
	{"1.0", "1.0", 0}, {"1.0", "2.0", -1}, {"2.0.1", "2.0.1a", -1}, {"5.5p1", "5.5p2", -1}, {"5.5p10", "5.5p1", 1}, {"10xyz", "10.1xyz", -1},
	{"xyz10", "xyz10.1", -1}, {"xyz.4", "8", -1}, {"xyz.4", "2", -1}, {"5.5p2", "5.6p1", -1}, {"5.6p1", "6.5p1", -1}, {"6.0.rc1", "6.0", 1},
	{"10b2", "10a1", 1}, {"10a2", "10b2", -1}, {"1.0aa", "1.0a", 1}, {"10.0001", "10.1", 0}, {"10.0001", "10.0039", -1}, {"4.999.9", "5.0", -1},
	{"20101121", "20101122", -1}, {"2_0", "2.0", 0}, {"a", "a+", 0}, {"+a", "a_", 0}, {"+_", "_+", 0}, {"1.0~rc1", "1.0", -1}, {"1.0~rc1", "1.0~rc2", -1},
	{"1.0~rc1~git123", "1.0~rc1", -1}, {"1.0^", "1.0", 1}, {"1.0^git1", "1.0^git2", -1}, {"1.0^git1", "1.01", -1}, {"1.0^20160101", "1.0.1", -1},
	{"1.0^20160101^git1", "1.0^20160102", -1}, {"1.0~rc1^git1", "1.0~rc1", 1}, {"1.0^git1~pre", "1.0^git1", -1},
	{"1:1.0-1", "2.0-1", 1}, {"0:1.0-1", "1.0-1", 0}, {"1.0-1", "1.0-2", -1}, {"1.0-1.el9", "1.0-1", 1}, {"1.0", "1.0-7", 0}, {"1.0-7", "1.0", 0},
}

func TestCompare(t *testing.T) {
	for _, c := range versionPairs {
		if got := Compare(c.a, c.b); got != c.want {
			t.Errorf("%s, %s: %d, not %d", c.a, c.b, got, c.want)
		}
		if got := Compare(c.b, c.a); got != -c.want {
			t.Errorf("%s, %s: %d, not %d", c.b, c.a, got, -c.want)
		}
	}
}

// TestCompareAsRpmDoes has rpm itself compare the same, and some thousand more.
func TestCompareAsRpmDoes(t *testing.T) {
	r := rpmtest.New(t)
	rnd := rand.New(rand.NewPCG(1, 2))
	var pairs [][2]string
	for _, c := range versionPairs {
		if !strings.ContainsAny(c.a+c.b, ":-") { // rpm.vercmp is of one part
			pairs = append(pairs, [2]string{c.a, c.b})
		}
	}
	word := func() string {
		var b strings.Builder
		for range 1 + rnd.IntN(7) {
			b.WriteString([]string{"1", "0", "2", "10", "a", "b", "rc", ".", ".", "~", "^", "+", "_"}[rnd.IntN(13)])
		}
		return b.String()
	}
	for range 5000 {
		pairs = append(pairs, [2]string{word(), word()})
	}
	var script strings.Builder
	for _, p := range pairs {
		fmt.Fprintf(&script, "print(rpm.vercmp(%q, %q) .. \" \")\n", p[0], p[1])
	}
	if err := os.WriteFile(r.Out("compare.lua"), []byte(script.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	answers := strings.Fields(r.Run(t, "sh", "-c", `rpm --eval "%{lua:dofile('compare.lua')}"`))
	if len(answers) != len(pairs) {
		t.Fatalf("%d answers to %d questions: %.200q", len(answers), len(pairs), answers)
	}
	wrong := 0
	for i, p := range pairs {
		want, err := strconv.Atoi(answers[i])
		if err != nil {
			t.Fatal(err)
		}
		if got := cmp.Compare(Compare(p[0], p[1]), 0); got != want {
			if wrong++; wrong < 20 {
				t.Errorf("%s, %s: %d, rpm says %d", p[0], p[1], got, want)
			}
		}
	}
	t.Logf("%d pairs, %d of them otherwise than rpm", len(pairs), wrong)
}

// TestMeets holds the rule of what meets what against cases that rpm's
// rpmdsCompare decides.
func TestMeets(t *testing.T) {
	relation := func(s string) packaging.Relation {
		f := strings.Fields(s)
		if len(f) == 1 {
			return packaging.Relation{Name: f[0]}
		}
		return packaging.Relation{Name: f[0], Operator: packaging.Operator(f[1]), Version: f[2]}
	}
	for _, c := range []struct {
		provided, asked string
		want            bool
	}{
		{"a", "a", true}, {"a", "a > 7", true}, {"a = 1", "a", true},
		{"a = 1-2", "a = 1", true}, {"a = 1-2", "a >= 1", true}, {"a = 1-2", "a <= 1", true}, {"a = 1-2", "a > 1", false}, {"a = 1-2", "a < 1", false},
		{"a = 1", "a = 1-2", true}, {"a = 1", "a > 1-2", true}, {"a = 1", "a < 1-2", true}, {"a = 1", "a < 1", false},
		{"a = 1-2", "a = 1-3", false}, {"a = 1-2", "a < 1-3", true}, {"a = 1-2", "a >= 1-3", false},
		{"a = 1:1-1", "a >= 2", true}, {"a = 2-1", "a >= 1:1", false},
		{"a >= 2", "a = 3", true}, {"a >= 2", "a = 1", false}, {"a < 2", "a < 1", true}, {"a < 2", "a > 2", false}, {"a <= 2", "a >= 2", true}, {"a > 2", "a > 3", true},
	} {
		if got := meets(relation(c.provided), relation(c.asked)); got != c.want {
			t.Errorf("%s for %s: %v", c.provided, c.asked, got)
		}
	}
}
