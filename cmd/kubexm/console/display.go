package console

import (
	"io"
	"os"

	"golang.org/x/term"
)

// Display is how long work is shown, and whether in colour.
type Display struct {
	Progress string // of --progress; "" where the command has none
	Color    string // of --color
}

// The words of --progress.
const (
	Auto  = "auto"
	TTY   = "tty"
	Plain = "plain"
	JSON  = "json"
	None  = "none"
)

// Env looks a variable of the environment up.
type Env func(string) (string, bool)

// Drawable tells whether w is a terminal of known size that does more than print lines.
func Drawable(w io.Writer, env Env) bool {
	f, ok := Bare(w).(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return false
	}
	width, height, err := term.GetSize(int(f.Fd()))
	return err == nil && width > 0 && height > 0 && !dumb(env)
}

func dumb(env Env) bool {
	v, _ := env("TERM")
	return v == "dumb"
}

// Live tells whether long work is shown on w as a frame or a bar that moves; structured
// says that a document was asked for. NO_COLOR has no say in it.
func (d Display) Live(w io.Writer, env Env, structured bool) bool {
	switch d.Progress {
	case TTY:
		return true
	case Plain, JSON, None:
		return false
	}
	return !structured && Drawable(w, env)
}

// Colored tells whether w is coloured: --color decides, else NO_COLOR, else whether it is
// a terminal that knows colours.
func (d Display) Colored(w io.Writer, env Env) bool {
	switch d.Color {
	case "always":
		return true
	case "never":
		return false
	}
	if v, ok := env("NO_COLOR"); ok && v != "" {
		return false
	}
	return IsTerminal(w) && !dumb(env)
}
