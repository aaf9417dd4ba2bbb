package document

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mensylisir/kubexm/testdata/fair"
)

// TestBounds: input that is never written by hand, but possibly by an attacker, is rejected
// in bounded time and memory, with a word on why.
func TestBounds(t *testing.T) {
	const k = "name: a\n"
	many := func(n int, f func(i int) string) string {
		var b strings.Builder
		for i := range n {
			b.WriteString(f(i))
		}
		return b.String()
	}
	bomb := "values:\n  a0: &a0 {x: 1, y: 2}\n" + many(30, func(i int) string {
		return fmt.Sprintf("  a%d: &a%d {x: *a%d, y: *a%d}\n", i+1, i+1, i, i)
	})
	for _, x := range []struct{ name, text, want string }{
		{"alias bomb in values", k + bomb, "nested too deeply or has too many values"},
		{"alias bomb in fields", k + "labels: {a: &a [x, x, x, x, x, x, x, x, x, x]}\ntools: [" + strings.TrimSuffix(many(20000, func(int) string { return "*a," }), ",") + "]\n", "is a list, but must be text"},
		{"deep nesting", k + "values: " + strings.Repeat("{a: ", 5000) + "1" + strings.Repeat("}", 5000) + "\n", "values: is nested too deep"},
		{"deeper nesting", k + "plants: " + strings.Repeat("[", 20000) + "\n", "is not YAML"},
		{"huge file", k + strings.Repeat("# comment\n", 200_000), "is larger than 1048576 bytes"},
		{"many unknown fields", k + many(10000, func(i int) string { return fmt.Sprintf("f%dooooooo: 1\n", i) }), "has more problems than these 200"},
		{"many wrong plants", k + "plants:\n" + many(3000, func(int) string { return "    - {nam: x, port: y}\n" }), "has more problems than these 200"},
		{"many broken lines", k + strings.Repeat("a: [\n", 20000), "is not YAML"},
		{"long key", k + strings.Repeat("x", 500_000) + ": 1\n", "is not YAML"},
		{"NUL bytes", k + "a: \x00\n", "control characters are not allowed"},
		{"not UTF-8", k + "a: \xff\xfe\n", "is not YAML"},
		{"a binary", "\x7fELF\x02\x01\x01\x00\x00", "is not YAML"},
	} {
		t.Run(x.name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			clock := fair.Start()
			_, d := read(x.text)
			problems := d.Problems()
			took := clock.Took()
			runtime.ReadMemStats(&after)
			text := problems.Error()
			if problems.Err() == nil || !strings.Contains(text, x.want) {
				t.Errorf("%q is missing in:\n%.2000s", x.want, text)
			}
			if len(problems) > MaxProblems+1 || len(text) > 200_000 {
				t.Errorf("%d problems, %d bytes", len(problems), len(text))
			}
			// Far above what any of them takes, far below what an unbounded one would.
			clock.Limit(t, took, 30*time.Second)
			if mb := (after.TotalAlloc - before.TotalAlloc) >> 20; mb > 2000 {
				t.Errorf("allocated %d MB", mb)
			}
		})
	}
}

// TestBytesThatMeanNothing: line ends of Windows, a byte order mark, blanks at
// line ends and a missing last line end change nothing.
func TestBytesThatMeanNothing(t *testing.T) {
	text := "name: a\nvalues:\n  text: |\n    first\n    second\n"
	want, _ := read(text)
	for name, changed := range map[string]string{
		"CRLF": strings.ReplaceAll(text, "\n", "\r\n"), "BOM": "\ufeff" + text, "blanks": strings.ReplaceAll(text, ":\n", ":  \n"),
		"no last line end": strings.TrimSuffix(text, "\n") + "\n...", "document marks": "---\n" + text,
	} {
		got, d := read(changed)
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(span{}, lock{})); diff != "" || d.Failed() {
			t.Errorf("%s: %v\n%s", name, d.Problems(), diff)
		}
	}
}

// TestReaderFails: an error of the reader is a problem like others.
func TestReaderFails(t *testing.T) {
	if problems := Parse(failingReader{}, sampleSchema()).Problems(); !strings.Contains(problems.Error(), "cannot be read: the disk is gone") {
		t.Error(problems)
	}
}

type failingReader struct{}

func (failingReader) Read([]byte) (int, error) { return 0, fmt.Errorf("the disk is gone") }

// TestFullWidthColonInText: in a text of several lines it is a character like
// any other, and only after the text it stands for a colon again.
func TestFullWidthColonInText(t *testing.T) {
	g, d := read(`name: a
# b: |
values:
  banner: |
    title：welcome

    name： x
  lines:
  - >-  # folded
   note：y
  log: |2
      log：all
`)
	want := map[string]any{"banner": "title：welcome\n\nname： x\n", "lines": []any{"note：y"}, "log": "  log：all\n"}
	if diff := cmp.Diff(want, g.Values); diff != "" || d.Failed() {
		t.Errorf("values (-want +got):\n%s%v", diff, d.Problems())
	}
	_, d = read("values:\n  b: |\n    c：d\nname： a\nlabels:\n  x： y\n")
	got := d.Problems().Error()
	if !strings.HasPrefix(got, " 4:5: error: name is followed by a full-width colon") && !strings.HasPrefix(got, "4:5: error: name is followed by a full-width colon") ||
		!strings.Contains(got, "6:4: error: x is followed") || strings.Count(got, "\n") != 1 {
		t.Errorf("after the text:\n%s", got)
	}
}
