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

// Writer is what every command prints through. Text of hosts, bundles,
// registries and documents could steer a terminal, or show lines that are not
// there: control characters but newline and tab, and those that change the
// direction of text, are written as \uXXXX. In JSON that means the same character.
type Writer struct {
	to   io.Writer
	mu   sync.Mutex
	rest []byte // the begin of a character

	color  bool
	within bool // what was written ended within a line
}

// SetColor has the words that begin lines coloured.
func (w *Writer) SetColor(on bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.color = on
}

// shown is text as it is written.
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

// Plainly gives a Writer to w, or w where it is one.
func Plainly(w io.Writer) io.Writer {
	if _, ok := w.(*Writer); ok || w == nil {
		return w
	}
	return &Writer{to: w}
}

// Bare gives the writer below, for what may steer a terminal.
func Bare(w io.Writer) io.Writer {
	if p, ok := w.(*Writer); ok {
		return p.to
	}
	return w
}

// IsTerminal tells whether w is one.
func IsTerminal(w io.Writer) bool {
	f, ok := Bare(w).(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Write keeps the begin of a character for the next call.
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

// Flush writes the begin of a character that never came to its end.
func (w *Writer) Flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := w.shown(string(w.rest))
	w.rest = nil
	_, err := io.WriteString(w.to, text)
	return err
}

// PlainText gives text as Writer writes it.
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

// steers tells whether a character is one of C0, C1 or the bidirectional controls
// (Unicode's Bidi_Control), and neither newline nor tab.
func steers(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return false
	case r < 0x20, r >= 0x7f && r <= 0x9f:
		return true
	}
	return r == 0x061c || r == 0x200e || r == 0x200f || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069
}
