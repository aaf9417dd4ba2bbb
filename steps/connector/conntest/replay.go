package conntest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"

	"github.com/mensylisir/kubexm/steps/connector"
)

// Replayer returns the results of a recording. The commands must have the same order and
// the same input as recorded, or the test fails.
type Replayer struct {
	t    TB
	mu   sync.Mutex
	left []entry
	at   int
}

// Replay returns a Replayer for the file of a Recorder.
func Replay(t TB, path string) (*Replayer, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return ReplayArchive(t, b)
}

// ReplayArchive is Replay for an archive in memory.
func ReplayArchive(t TB, archive []byte) (*Replayer, error) {
	left, err := readEntries(archive)
	if err != nil {
		return nil, err
	}
	return &Replayer{t: t, left: left}, nil
}

// Exec returns the result of the next recorded command.
func (r *Replayer) Exec(ctx context.Context, c connector.Cmd) (connector.Result, error) {
	if err := errors.Join(c.Check(), ctx.Err()); err != nil {
		return connector.Result{}, err
	}
	sum := ""
	if c.Stdin != nil {
		h := sha256.New()
		if _, err := io.Copy(h, c.Stdin); err != nil {
			return connector.Result{}, fmt.Errorf("read the input: %w", err)
		}
		sum = hex.EncodeToString(h.Sum(nil))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.at++
	if len(r.left) == 0 {
		return r.fail("command %d, %s, was not recorded: the record ends before it", r.at, connector.Quote(c.Argv))
	}
	e := r.left[0]
	switch {
	case e.Verb != c.Verb || !slices.Equal(e.Argv, c.Argv) || e.Sudo != c.Sudo:
		return r.fail("command %d is %s %s, recorded was %s %s", r.at, c.Verb, connector.Quote(c.Argv), e.Verb, connector.Quote(e.Argv))
	case e.Stdin != sum:
		return r.fail("command %d, %s: its input is not the recorded one", r.at, connector.Quote(c.Argv))
	}
	r.left = r.left[1:]
	if e.Error != "" {
		return connector.Result{}, errors.New(e.Error)
	}
	var failed error
	out := connector.NewOutput(c, func(err error) { failed = err })
	_, _ = out.Stdout().Write(e.stdout) // tells failed
	_, _ = out.Stderr().Write(e.stderr)
	return out.Result(e.Exit), failed
}

// Close fails the test if recorded commands were not run.
func (r *Replayer) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.left) > 0 {
		_, err := r.fail("%d recorded commands were not run, the first is %s", len(r.left), connector.Quote(r.left[0].Argv))
		return err
	}
	return nil
}

func (r *Replayer) fail(format string, args ...any) (connector.Result, error) {
	err := fmt.Errorf("replay: "+format, args...)
	if r.t != nil {
		r.t.Helper()
		r.t.Errorf("%v", err)
	}
	return connector.Result{}, err
}
