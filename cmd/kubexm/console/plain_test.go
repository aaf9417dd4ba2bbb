package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"
)

func TestPlainWriter(t *testing.T) {
	for text, want := range map[string]string{
		"plain\ttext\n":        "plain\ttext\n",
		"ünïcödé … 字 \ufffd":   "ünïcödé … 字 \ufffd",
		"\x1b[31mred\x1b[0m":   `\u001b[31mred\u001b[0m`,
		"one\rtwo\x00\x7f":     `one\u000dtwo\u0000\u007f`,
		"\u009b2J\u0085":       `\u009b2J\u0085`,
		"\x9b2J":               `\x9b2J`,
		"a\u202etxt.exe\u2066": `a\u202etxt.exe\u2066`,
		"cut \xe2\x80":         `cut \xe2\x80`,
		"":                     "",
	} {
		for size := 1; size <= len(text)+1; size++ { // however it is cut into writes
			var b bytes.Buffer
			w := &Writer{to: &b}
			for i := 0; i < len(text); i += size {
				part := text[i:min(i+size, len(text))]
				if n, err := io.WriteString(w, part); n != len(part) || err != nil {
					t.Fatal(n, err)
				}
			}
			if err := w.Flush(); err != nil || b.String() != want {
				t.Errorf("%q in pieces of %d: %q, want %q", text, size, b.String(), want)
			}
		}
	}
	// In JSON it means what it meant.
	v := map[string]string{"a\u202e": "\x1b\u009b\u2067\x7f"}
	var b bytes.Buffer
	var got map[string]string
	if err := json.NewEncoder(&Writer{to: &b}).Encode(v); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b.Bytes(), &got); err != nil || got["a\u202e"] != v["a\u202e"] || strings.ContainsFunc(b.String(), steers) {
		t.Errorf("%q, %v", b.String(), err)
	}
}

// FuzzFrame shows foreign text in a live frame, and in the lines above it.
func FuzzFrame(f *testing.F) {
	for _, s := range []string{"\x1b]0;title\a\x1b[2J", "\u009b31m", "\x9b31m", "a\u202eb\u2066c\u200f", "one\rtwo", "\x7f\x00", "cut \xe2\x80"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var b bytes.Buffer
		s := NewScreen(&b)
		hide := s.Show(func(int, int) []string { return []string{text} })
		fmt.Fprintln(s, text)
		hide()
		if got := frames.ReplaceAllString(b.String(), ""); strings.ContainsFunc(got, steers) {
			t.Errorf("a frame: %q", got)
		}
	})
}

// frames are what a screen itself steers the terminal with.
var frames = regexp.MustCompile(`\r(\x1b\[[0-9]+A)?\x1b\[J`)
