package connector_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/steps/connector"
)

func TestRedactor(t *testing.T) {
	key := "-----BEGIN KEY-----\nAAAABBBBCCCC\nshort\nDDDDEEEEFFFF\n-----END KEY-----\n"
	for _, c := range []struct {
		name    string
		secrets []string
		in      string
		want    string
	}{
		{"none", nil, "all stays", "all stays"},
		{"empty", []string{""}, "all stays", "all stays"},
		{"plain", []string{"hunter2"}, "the password is hunter2.", "the password is ***."},
		{"twice in a row", []string{"ab"}, "xababx", "x***x"},
		{"two that overlap", []string{"abc", "bcd"}, "xabcdx", "x***x"},
		{"one in the other", []string{"pass", "password1"}, "password1 password pass", "*** ***word ***"},
		{"with spaces around", []string{" hunter2\n"}, "it is hunter2", "it is ***"},
		{"lines of a key", []string{key}, "log: AAAABBBBCCCC\nshort -----BEGIN KEY-----", "log: ***\nshort -----BEGIN KEY-----"},
		{"a secret with stars", []string{"a*"}, "xa*y", "x+++y"},
		{"bytes", []string{"\xff\x00"}, "a\xff\x00b", "a***b"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := connector.NewRedactor(c.secrets...)
			if got := r.String(c.in); got != c.want {
				t.Errorf("String gives %q, want %q", got, c.want)
			}
			if got := r.Argv([]string{"x", c.in}); got[1] != c.want {
				t.Errorf("Argv gives %q, want %q", got[1], c.want)
			}
			for size := 1; size <= len(c.in); size++ {
				if got := stream(t, r, c.in, size); got != c.want {
					t.Errorf("in pieces of %d the writer gives %q, want %q", size, got, c.want)
				}
			}
		})
	}
}

func TestRedactorGrows(t *testing.T) {
	r := connector.NewRedactor("one")
	more := r.With("two")
	r.Add("three")
	if got := r.String("one two three"); got != "*** two ***" {
		t.Errorf("after Add: %q", got)
	}
	if got := more.String("one two three"); got != "*** *** three" {
		t.Errorf("With: %q", got)
	}
	var none *connector.Redactor
	if got := none.With("x").String("xy") + none.String("x"); got != "***yx" {
		t.Errorf("of nil: %q", got)
	}
}

// TestRedactorHoldsLittle: what cannot be part of a secret is handed on at once,
// else a live log would lag behind.
func TestRedactorHoldsLittle(t *testing.T) {
	var out bytes.Buffer
	w := connector.NewRedactor("12345678").Writer(&out)
	if _, err := w.Write([]byte("a line of output\n")); err != nil {
		t.Fatal(err)
	}
	if held := len("a line of output\n") - out.Len(); held > 7 {
		t.Errorf("%d bytes are held back", held)
	}
}

func stream(t *testing.T, r *connector.Redactor, in string, size int) string {
	t.Helper()
	var out bytes.Buffer
	w := r.Writer(&out)
	for piece := range slices.Chunk([]byte(in), size) {
		if n, err := w.Write(piece); n != len(piece) || err != nil {
			t.Fatalf("Write = %d, %v", n, err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// FuzzRedactor: no secret comes through, however it is cut, and the pieces give
// the same as the whole.
func FuzzRedactor(f *testing.F) {
	f.Add("hunter2", "swordfish", "user hunter2 with swordfishunter2", uint8(3))
	f.Add("aa", "aab", "aaaaabaaab", uint8(1))
	f.Add("*", "**+", "* ** *** **+", uint8(2))
	f.Add("ab", "ba", "abababa", uint8(1))
	f.Add("\n", "a\nb", "a\nb\na", uint8(1))
	f.Fuzz(func(t *testing.T, a, b, text string, size uint8) {
		r := connector.NewRedactor(a, b)
		whole := r.String(text)
		pieces := stream(t, r, text, int(size)+1)
		if whole != pieces {
			t.Fatalf("whole %q, in pieces %q", whole, pieces)
		}
		if coversASCII(a + b) {
			return // no character is left for a mask
		}
		for _, s := range []string{a, b} {
			if s != "" && strings.Contains(whole, s) {
				t.Fatalf("%q comes through in %q", s, whole)
			}
		}
	})
}

func coversASCII(s string) bool {
	for c := byte('*'); c < 0x7f; c++ {
		if strings.IndexByte(s, c) < 0 {
			return false
		}
	}
	return true
}
