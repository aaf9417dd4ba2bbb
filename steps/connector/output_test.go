package connector_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/steps/connector"
)

func TestOutputKeepsHeadAndTail(t *testing.T) {
	text := strings.Repeat("0123456789", 100)
	for _, size := range []int{1, 7, 100, 1000} {
		o := connector.NewOutput(connector.Cmd{Limit: 25}, func(error) { t.Error("stopped") })
		for piece := range slices.Chunk([]byte(text), size) {
			if n, err := o.Stdout().Write(piece); n != len(piece) || err != nil {
				t.Fatalf("Write = %d, %v", n, err)
			}
			if n, err := o.Stderr().Write(piece); n != len(piece) || err != nil {
				t.Fatalf("Write = %d, %v", n, err)
			}
		}
		r := o.Result(3)
		if string(r.Stdout) != text[:25] || string(r.Stderr) != text[len(text)-25:] || !r.Truncated || r.Exit != 3 {
			t.Errorf("in pieces of %d: %+v", size, r)
		}
	}
	o := connector.NewOutput(connector.Cmd{Limit: 4}, nil)
	_, _ = o.Stdout().Write([]byte("four"))
	if r := o.Result(0); r.Truncated || string(r.Stdout) != "four" {
		t.Errorf("a full head counts as truncated: %+v", r)
	}
}

type failing struct{ n int }

var errFull = errors.New("disk is full")

func (f *failing) Write(b []byte) (int, error) {
	if f.n++; f.n > 1 {
		return 0, errFull
	}
	return len(b), nil
}

func TestOutputTellsOfAWriterThatFails(t *testing.T) {
	var stopped []error
	f := &failing{}
	o := connector.NewOutput(connector.Cmd{Stdout: f}, func(err error) { stopped = append(stopped, err) })
	for range 4 {
		if n, err := o.Stdout().Write([]byte("xy")); n != 2 || err != nil {
			t.Fatalf("Write = %d, %v: the wire must not see it", n, err)
		}
	}
	if len(stopped) != 1 || !errors.Is(stopped[0], errFull) || f.n != 2 {
		t.Errorf("stopped with %v after %d writes", stopped, f.n)
	}
	o.Result(0)
	if _, err := o.Stdout().Write([]byte("late")); err != nil || f.n != 2 {
		t.Errorf("after the end the writer was used again")
	}
}

func TestCmdArgs(t *testing.T) {
	for _, c := range []struct {
		argv []string
		want []string
	}{
		{[]string{"/bin/sh", "-c", "script", "sh", "a", "b"}, []string{"a", "b"}},
		{[]string{"/bin/sh", "-c", "script", "sh"}, nil},
		{[]string{"systemctl", "start", "--", "x.service"}, []string{"x.service"}},
		{[]string{"groupadd", "--system", "x"}, []string{"--system", "x"}},
		{nil, nil},
	} {
		if got := (connector.Cmd{Argv: c.argv}).Args(); !slices.Equal(got, c.want) {
			t.Errorf("Args of %q = %q, want %q", c.argv, got, c.want)
		}
	}
}

func TestCmdCheck(t *testing.T) {
	for _, argv := range [][]string{nil, {""}, {"", "x"}, {"x", "a\x00b"}} {
		if err := (connector.Cmd{Argv: argv}).Check(); err == nil {
			t.Errorf("%q was not refused", argv)
		}
	}
	if err := (connector.Cmd{Argv: []string{"x", ""}}).Check(); err != nil {
		t.Error(err)
	}
}
