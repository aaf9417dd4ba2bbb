package console

import (
	"bytes"
	"testing"
)

// TestColorText colours words at the begin of a line, and those alone.
func TestColorText(t *testing.T) {
	for _, c := range []struct {
		text   string
		within bool
		want   string
	}{
		{"error: a\nnote: error: b\n", false, "\x1b[31merror:\x1b[0m a\n\x1b[2mnote:\x1b[0m error: b\n"},
		{"error: a\nnext: b\n", true, "error: a\n\x1b[32mnext:\x1b[0m b\n"},
		{"x error: a", false, "x error: a"},
		{"", true, ""},
	} {
		if got := colorText(c.text, c.within); got != c.want {
			t.Errorf("%q, %t: %q, want %q", c.text, c.within, got, c.want)
		}
	}
}

// TestProgressLines: --progress json tells on standard error where a build is.
func TestProgressLines(t *testing.T) {
	var out bytes.Buffer
	p := &Progress{out: &out, current: map[int]string{}, json: true}
	p.name, p.expected, p.done = "build", 200, 150
	p.Start("binary/a", 200)
	if got, want := p.jsonLine(), `{"type":"progress","phase":"build","bytes":150,"of":200,"items":["binary/a"]}`; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}
