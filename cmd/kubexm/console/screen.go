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

// redrawEvery is the interval at which a frame is redrawn.
const redrawEvery = 200 * time.Millisecond

// Screen writes lines, escaped like Writer, with an optional live frame below them. It
// does not hide the cursor or switch to the alternate screen, so the terminal stays
// usable however the process ends.
type Screen struct {
	mu    sync.Mutex
	out   io.Writer
	size  func() (width, height int)           // of the terminal
	frame func(width, height int) []string     // nil if no frame is shown
	drawn []string                             // the frame on the terminal
	color bool                                 // colour the prefixes of lines
	open  []byte                               // an incomplete line
	after func(time.Duration) <-chan time.Time // timer of redrawing
}

// NewScreen returns a Screen that writes to out.
func NewScreen(out io.Writer) *Screen {
	out = Underlying(out)
	return &Screen{out: out, after: time.After, size: func() (int, int) {
		if f, ok := out.(*os.File); ok {
			if w, h, err := term.GetSize(int(f.Fd())); err == nil {
				return w, h
			}
		}
		return 80, 24
	}}
}

// Width returns the width of the terminal in columns.
func (s *Screen) Width() int {
	width, _ := s.size()
	return width
}

// Write prints lines, above the frame if one is shown.
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

// SetColor sets whether the prefixes of lines are coloured.
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

// Show draws a frame below the lines and keeps it up to date. The returned function
// removes the frame; it may be called more than once.
func (s *Screen) Show(frame func(width, height int) []string) (hide func()) {
	s.mu.Lock()
	s.frame = frame
	_ = s.paint("") // a frame that is not drawn is not an error
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

// paint replaces the frame by lines and redraws the frame below them, in one write to
// avoid flicker.
func (s *Screen) paint(lines string) error {
	width, height := s.size()
	text := s.erase(width) + s.shown(lines)
	s.drawn = nil
	for _, l := range s.frame(width, max(height-1, 0)) { // the cursor is on the line below
		l = Clip(strings.ReplaceAll(PlainText(l), "\n", " "), width)
		s.drawn = append(s.drawn, l)
		text += l + "\n"
	}
	_, err := io.WriteString(s.out, text)
	return err
}

// erase returns the control sequence that clears the frame. It accounts for lines that
// the terminal wrapped because the window became narrower.
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

// Clip truncates a line to a width. It assumes one column for each rune, which is true
// for ids and numbers.
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
