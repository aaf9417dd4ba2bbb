package apt

import (
	"bufio"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// ordered has versions, each earlier than the next.
var ordered = []string{
	"~~", "~~a", "~", "0", "0+", "0.1~rc1", "0.1", "0.1-1~bpo12+1", "0.1-1", "0.1-1+b1", "0.1-1.1", "0.1a", "0.1+b1", "0.2",
	"0.10", "1.0~beta-1", "1.0-1~deb12u1", "1.0-1", "1.0A", "1.0a", "1.0+dfsg-1", "1.0.1", "20230102123456789012345", "20230102123456789012346",
	"1:0", "1:0-1", "2:0", "10:0",
}

func TestCompare(t *testing.T) {
	for i, a := range ordered {
		for j, b := range ordered {
			if have, want := sign(Compare(a, b)), sign(i-j); have != want {
				t.Errorf("%s and %s: %d, want %d", a, b, have, want)
			}
		}
	}
	for _, x := range [][2]string{{"1.0", "1.00"}, {"0:1", "1"}, {"1-0", "1"}, {"1.", "1.0"}, {"", "0"}} {
		if Compare(x[0], x[1]) != 0 {
			t.Errorf("%s and %s differ", x[0], x[1])
		}
	}
}

func sign(n int) int {
	switch {
	case n < 0:
		return -1
	case n > 0:
		return 1
	}
	return 0
}

// TestCompareAsDpkg asks dpkg about neighbours and strangers of the versions in
// testdata, which are of real packages, and about variations of them.
func TestCompareAsDpkg(t *testing.T) {
	if _, err := exec.LookPath("dpkg"); err != nil {
		t.Skip("there is no dpkg here")
	}
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("there is no sh here")
	}
	b, err := os.ReadFile("testdata/versions.txt")
	if err != nil {
		t.Fatal(err)
	}
	versions := strings.Fields(string(b))
	slices.SortFunc(versions, Compare)
	r := rand.New(rand.NewPCG(1, 2))
	var pairs [][2]string
	for i, v := range versions[1:] {
		pairs = append(pairs, [2]string{versions[i], v}, [2]string{v, versions[r.IntN(len(versions))]}, [2]string{v, varied(r, v)})
	}
	// One shell asks for all: dpkg compares one pair at a time.
	const script = `while read a b; do
if dpkg --compare-versions "$a" lt "$b"; then echo -1; elif dpkg --compare-versions "$a" eq "$b"; then echo 0; else echo 1; fi
done`
	c := exec.CommandContext(t.Context(), "sh", "-c", script)
	var in strings.Builder
	for _, p := range pairs {
		in.WriteString(p[0] + " " + p[1] + "\n")
	}
	c.Stdin = strings.NewReader(in.String())
	out, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	answers := bufio.NewScanner(strings.NewReader(string(out)))
	for _, p := range pairs {
		if !answers.Scan() {
			t.Fatal("too few answers")
		}
		if have := sign(Compare(p[0], p[1])); answers.Text() != map[int]string{-1: "-1", 0: "0", 1: "1"}[have] {
			t.Errorf("%s and %s: %d, and dpkg says %s", p[0], p[1], have, answers.Text())
		}
	}
	t.Logf("%d pairs", len(pairs))
}

// varied changes one character behind the epoch.
func varied(r *rand.Rand, v string) string {
	const alphabet = "0129~+.aZ"
	epoch, rest, ok := strings.Cut(v, ":")
	if !ok {
		epoch, rest = "", v
	} else {
		epoch += ":"
	}
	at := 1 + r.IntN(len(rest))
	return epoch + rest[:at] + string(alphabet[r.IntN(len(alphabet))]) + rest[min(at+r.IntN(2), len(rest)):]
}

func FuzzCompare(f *testing.F) {
	for i, v := range ordered[1:] {
		f.Add(v, ordered[i], "1:2.0-3")
	}
	f.Fuzz(func(t *testing.T, a, b, c string) {
		if Compare(a, a) != 0 {
			t.Errorf("%q differs from itself", a)
		}
		if sign(Compare(a, b)) != -sign(Compare(b, a)) {
			t.Errorf("%q and %q are not one order", a, b)
		}
		if Compare(a, b) <= 0 && Compare(b, c) <= 0 && Compare(a, c) > 0 {
			t.Errorf("%q, %q and %q are not one order", a, b, c)
		}
	})
}
