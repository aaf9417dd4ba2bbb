package console

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"golang.org/x/term"
)

// redrawEvery is how often a live frame follows the clock and the window.
const redrawEvery = 200 * time.Millisecond

// Screen is where lines for people go, as Writer writes them. While a frame is shown, lines scroll by
// above it. It does not hide the cursor or take the window over: whatever ends
// the process, the terminal is as it was.
type Screen struct {
	mu    sync.Mutex
	out   io.Writer
	size  func() (width, height int)           // of the terminal
	frame func(width, height int) []string     // nil: nothing is shown
	drawn []string                             // the frame that stands on the terminal
	color bool                                 // of words that begin lines
	open  []byte                               // the begin of a line, not ended yet
	after func(time.Duration) <-chan time.Time // the clock of redrawing
}

// NewScreen writes to out.
func NewScreen(out io.Writer) *Screen {
	out = Bare(out)
	return &Screen{out: out, after: time.After, size: func() (int, int) {
		if f, ok := out.(*os.File); ok {
			if w, h, err := term.GetSize(int(f.Fd())); err == nil {
				return w, h
			}
		}
		return 80, 24
	}}
}

// Width is how wide the terminal is.
func (s *Screen) Width() int {
	width, _ := s.size()
	return width
}

// Write prints lines, above the frame where one is shown.
func (s *Screen) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.frame == nil {
		_, err := io.WriteString(s.out, s.shown(string(b)))
		return len(b), err
	}
	s.open = append(s.open, b...)
	end := bytes.LastIndexByte(s.open, '\n') + 1
	if end == 0 {
		return len(b), nil
	}
	err := s.paint(string(s.open[:end]))
	s.open = append([]byte(nil), s.open[end:]...)
	return len(b), err
}

// SetColor has the words that begin lines coloured.
func (s *Screen) SetColor(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.color = on
}

func (s *Screen) shown(lines string) string {
	if s.color {
		return colorText(PlainText(lines), false)
	}
	return PlainText(lines)
}

// Show puts a frame under the lines and keeps it up to date. The function that
// it gives takes the frame away; it may be called twice.
func (s *Screen) Show(frame func(width, height int) []string) (hide func()) {
	s.mu.Lock()
	s.frame = frame
	_ = s.paint("") // a lost frame is no failure
	s.mu.Unlock()
	over, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		for {
			select {
			case <-over:
				return
			case <-s.after(redrawEvery):
				s.mu.Lock()
				_ = s.paint("")
				s.mu.Unlock()
			}
		}
	}()
	return sync.OnceFunc(func() {
		close(over)
		<-gone
		s.mu.Lock()
		defer s.mu.Unlock()
		width, _ := s.size()
		rest := string(s.open)
		if rest != "" {
			rest += "\n"
		}
		_, _ = io.WriteString(s.out, s.erase(width)+s.shown(rest))
		s.frame, s.drawn, s.open = nil, nil, nil
	})
}

// paint writes lines in the place of the frame, and the frame anew below them,
// in one piece: a terminal that shows it half way flickers.
func (s *Screen) paint(lines string) error {
	width, height := s.size()
	text := s.erase(width) + s.shown(lines)
	s.drawn = nil
	for _, l := range s.frame(width, max(height-1, 0)) { // the cursor stands in the line below
		l = Clip(strings.ReplaceAll(PlainText(l), "\n", " "), width)
		s.drawn = append(s.drawn, l)
		text += l + "\n"
	}
	_, err := io.WriteString(s.out, text)
	return err
}

// erase goes back to where the frame begins and clears all below. A window that
// became narrower has folded the lines that stand there.
func (s *Screen) erase(width int) string {
	rows := 0
	for _, l := range s.drawn {
		rows += 1 + max(utf8.RuneCountInString(l)-1, 0)/max(width, 1)
	}
	if rows == 0 {
		return "\r\x1b[J"
	}
	return fmt.Sprintf("\r\x1b[%dA\x1b[J", rows)
}

// Clip cuts a line to a width. Frames hold ids and numbers: one rune, one column.
func Clip(line string, width int) string {
	line = strings.TrimRight(line, " ")
	if utf8.RuneCountInString(line) <= width {
		return line
	}
	if width < 1 {
		return ""
	}
	return string([]rune(line)[:width-1]) + "…"
}
