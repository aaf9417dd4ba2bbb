package console

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"unicode/utf8"

	"golang.org/x/term"
)

// Writer is the output of every command. It escapes control characters except newline
// and tab, and characters that change the direction of text, as \uXXXX: text from hosts,
// bundles, registries and documents could otherwise control the terminal or forge lines.
// In JSON the escape means the same character.
type Writer struct {
	to   io.Writer
	mu   sync.Mutex
	rest []byte // an incomplete UTF-8 sequence

	color  bool
	within bool // the last write ended within a line
}

// SetColor sets whether the prefixes of lines are coloured.
func (w *Writer) SetColor(on bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.color = on
}

// shown returns text escaped and coloured.
func (w *Writer) shown(text string) string {
	text = PlainText(text)
	if text == "" {
		return ""
	}
	within := w.within
	w.within = !strings.HasSuffix(text, "\n")
	if w.color {
		return colorText(text, within)
	}
	return text
}

// AsWriter returns a Writer to w, or w itself if it is one.
func AsWriter(w io.Writer) io.Writer {
	if _, ok := w.(*Writer); ok || w == nil {
		return w
	}
	return &Writer{to: w}
}

// Underlying returns the underlying writer, for terminal control sequences.
func Underlying(w io.Writer) io.Writer {
	if p, ok := w.(*Writer); ok {
		return p.to
	}
	return w
}

// IsTerminal reports whether w is a terminal.
func IsTerminal(w io.Writer) bool {
	f, ok := Underlying(w).(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Write writes b escaped. An incomplete UTF-8 sequence at the end is buffered until the
// next call.
func (w *Writer) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := append(w.rest, b...)
	end := len(text)
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if c := text[len(text)-n]; utf8.RuneStart(c) {
			if !utf8.FullRune(text[len(text)-n:]) {
				end = len(text) - n
			}
			break
		}
	}
	w.rest = append([]byte(nil), text[end:]...)
	if _, err := io.WriteString(w.to, w.shown(string(text[:end]))); err != nil {
		return 0, err
	}
	return len(b), nil
}

// Flush writes a buffered incomplete UTF-8 sequence.
func (w *Writer) Flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := w.shown(string(w.rest))
	w.rest = nil
	_, err := io.WriteString(w.to, text)
	return err
}

// PlainText returns text escaped as by Writer.
func PlainText(text string) string {
	var b strings.Builder
	from := 0
	for i, r := range text {
		size := utf8.RuneLen(r)
		word := ""
		switch {
		case r == utf8.RuneError && (i+3 > len(text) || text[i:i+3] != string(utf8.RuneError)):
			word, size = fmt.Sprintf(`\x%02x`, text[i]), 1
		case steers(r):
			word = fmt.Sprintf(`\u%04x`, r)
		default:
			continue
		}
		b.WriteString(text[from:i] + word)
		from = i + size
	}
	if from == 0 {
		return text
	}
	return b.String() + text[from:]
}

// steers reports whether a character other than newline and tab is a C0 or C1 control,
// or a bidirectional control (Unicode's Bidi_Control).
func steers(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return false
	case r < 0x20, r >= 0x7f && r <= 0x9f:
		return true
	}
	return r == 0x061c || r == 0x200e || r == 0x200f || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069
}
