package runner_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
	"github.com/mensylisir/kubexm/steps/runner"
)

// TestTruncatedOutputIsAnError, unless AllowTruncated accepts the beginning of the output.
func TestTruncatedOutputIsAnError(t *testing.T) {
	s := conntest.New(t)
	s.HandleProgram("print", func(c connector.Cmd, _ []byte) (connector.Result, bool) {
		exit := 0
		if len(c.Argv) > 1 {
			exit = 1
		}
		return connector.Result{Stdout: bytes.Repeat([]byte("x"), connector.DefaultLimit+1), Exit: exit}, true
	})
	r := runner.New(s, runner.Options{})
	if out, err := r.Exec(t.Context(), "print"); !errors.Is(err, runner.ErrTruncated) {
		t.Errorf("%d bytes, %v", len(out), err)
	}
	if _, err := r.Run(t.Context(), runner.Cmd{Argv: []string{"print", "1"}, OK: []int{1}}); !errors.Is(err, runner.ErrTruncated) {
		t.Errorf("with another exit status: %v", err)
	}
	var cmd *runner.CmdError
	if _, err := r.Exec(t.Context(), "print", "1"); !errors.As(err, &cmd) {
		t.Errorf("of a program that fails, that is what is said: %v", err)
	}
	var all bytes.Buffer
	for name, c := range map[string]runner.Cmd{
		"the beginning is enough": {AllowTruncated: true}, "it is kept": {Limit: connector.DefaultLimit + 1}, "it goes elsewhere": {Stdout: &all}, "it is shown": {Output: &all},
	} {
		c.Argv = []string{"print"}
		if _, err := r.Run(t.Context(), c); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
