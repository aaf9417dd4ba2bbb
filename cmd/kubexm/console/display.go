package console

import (
	"io"
	"os"

	"golang.org/x/term"
)

// Display holds the settings of progress and colour.
type Display struct {
	Progress string // value of --progress; "" if the command has no such flag
	Color    string // value of --color
}

// The values of --progress.
const (
	Auto  = "auto"
	TTY   = "tty"
	Plain = "plain"
	JSON  = "json"
	None  = "none"
)

// Env looks up an environment variable.
type Env func(string) (string, bool)

// Drawable reports whether w is a terminal of known size that supports cursor movement.
func Drawable(w io.Writer, env Env) bool {
	f, ok := Underlying(w).(*os.File)
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

// Live reports whether progress is shown on w as a live view or a progress bar.
// structured is set if the output is JSON or YAML. NO_COLOR has no effect on it.
func (d Display) Live(w io.Writer, env Env, structured bool) bool {
	switch d.Progress {
	case TTY:
		return true
	case Plain, JSON, None:
		return false
	}
	return !structured && Drawable(w, env)
}

// Colored reports whether output on w is coloured: decided by --color, else by NO_COLOR,
// else by whether w is a terminal that supports colours.
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
