package runnertest

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/runner"
)

// both writes to both outputs.
const both = `echo one; echo "$1" >&2; echo two`

func execs(_ *testing.T, b *bench) {
	if b.Sim != nil {
		b.Sim.Script(connector.Result{Stdout: []byte("out\n"), Stderr: []byte("err\n"), Exit: 3}, "/bin/sh", "-c", "cat; echo err >&2; exit 3")
		b.Sim.Script(connector.Result{Stdout: []byte("one\nb  c\ntwo\n")}, "/bin/sh", "-c", `exec "$@" 2>&1`, "sh", "/bin/sh", "-c", both, "sh", "b  c")
		b.Sim.Script(connector.Result{Stdout: []byte("b  c\n")}, "printf", "%s\n", "b  c")
		b.Sim.Script(connector.Result{Exit: 127, Stderr: []byte("no-such-program: not found")}, "no-such-program")
	}
	var output bytes.Buffer
	res, err := b.r.Run(b.ctx, runner.Cmd{
		Argv: []string{"/bin/sh", "-c", "cat; echo err >&2; exit 3"}, Stdin: strings.NewReader("out\n"), OK: []int{3}, Output: &output, Timeout: time.Minute,
	})
	b.ok(err)
	if res.Exit != 3 || string(res.Stdout) != "out\n" || string(res.Stderr) != "err\n" {
		b.Fatalf("result is %d %q %q", res.Exit, res.Stdout, res.Stderr)
	}
	if s := output.String(); !strings.Contains(s, "out\n") || !strings.Contains(s, "err\n") {
		b.Fatalf("output is %q", s)
	}
	_, err = b.r.Run(b.ctx, runner.Cmd{Argv: []string{"/bin/sh", "-c", "cat; echo err >&2; exit 3"}, Stdin: strings.NewReader("out\n")})
	var failed *runner.CmdError
	if !errors.As(err, &failed) || failed.Exit != 3 || failed.Stderr != "err\n" || failed.Error() != "sh: exit 3: err" {
		b.Fatalf("error is %v", err)
	}
	out, err := b.r.Exec(b.ctx, "printf", "%s\n", "b  c")
	b.ok(err)
	if string(out) != "b  c\n" {
		b.Fatalf("output is %q", out)
	}
	out, err = b.r.Merged(b.ctx, "/bin/sh", "-c", both, "sh", "b  c")
	b.ok(err)
	if string(out) != "one\nb  c\ntwo\n" {
		b.Fatalf("both outputs are %q", out)
	}
	_, err = b.r.Exec(b.ctx, "no-such-program")
	if !errors.As(err, &failed) || failed.Exit != 127 {
		b.Fatalf("error of a program that is missing is %v", err)
	}
}
