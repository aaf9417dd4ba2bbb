package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"text/tabwriter"
	"time"
)

// note is a line of build/test-all.jsonl: the result of a part.
type note struct {
	Part    string    `json:"part"`
	Run     string    `json:"run"`
	Tree    string    `json:"tree"`
	Passed  bool      `json:"passed"`
	Seconds float64   `json:"seconds"`
	At      time.Time `json:"at"`
}

// all runs parts in the checkout at root.
type all struct {
	root string
	tree string
	out  io.Writer
	// notes has the last result of each part.
	notes map[string]note
}

func (a *all) file() string { return filepath.Join(a.root, "build", "test-all.jsonl") }

func (a *all) log(p part) string { return filepath.Join("build", "test-all", p.Name+".log") }

// open reads the results of earlier runs. A kill may leave an incomplete line.
func (a *all) open() error {
	a.notes = map[string]note{}
	f, err := os.Open(a.file())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var n note
		if json.Unmarshal(lines.Bytes(), &n) == nil {
			a.notes[n.Part] = n
		}
	}
	return lines.Err()
}

// passed reports whether a part passed on this tree.
func (a *all) passed(p part) bool {
	n := a.notes[p.Name]
	return n.Passed && n.Tree == a.tree && n.Run == p.Run
}

// add appends a line.
func (a *all) add(n note) error {
	a.notes[n.Part] = n
	b, err := json.Marshal(n)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(a.file(), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(append([]byte("\n"), append(b, '\n')...)) // after an incomplete line too
	return errors.Join(err, f.Close())
}

// run runs the parts that have not passed on this tree, one after another.
func (a *all) run(ctx context.Context, parts []part) error {
	for _, p := range parts {
		if a.passed(p) {
			fmt.Fprintf(a.out, "already passed on this tree: %s\n", p.Name)
			continue
		}
		fmt.Fprintf(a.out, "%s  %s: %s (about %d minutes), output in %s\n", time.Now().Format(time.TimeOnly), p.Name, p.Run, p.Minutes, a.log(p))
		begin := time.Now()
		failed, err := a.one(ctx, p)
		if ctx.Err() != nil {
			return ctx.Err() // the part has no result
		}
		if err != nil {
			return err
		}
		if err := a.add(note{Part: p.Name, Run: p.Run, Tree: a.tree, Passed: failed == nil, Seconds: time.Since(begin).Round(time.Second).Seconds(), At: time.Now().UTC().Truncate(time.Second)}); err != nil {
			return err
		}
		if failed != nil {
			fmt.Fprintf(a.out, "FAILED %s: %v; run it alone: make test-all PART=%s\n", p.Name, failed, p.Name)
		}
	}
	return nil
}

// one runs a part in its own process group, and returns why it failed.
func (a *all) one(ctx context.Context, p part) (failed, err error) {
	path := filepath.Join(a.root, a.log(p))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	log, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", p.Run)
	cmd.Dir, cmd.Stdout, cmd.Stderr = a.root, log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	cmd.WaitDelay = time.Minute
	failed = cmd.Run()
	var exit *exec.ExitError
	if failed != nil && !errors.As(failed, &exit) {
		return nil, failed
	}
	return failed, nil
}

// table prints the results of the parts on this tree, and returns the number of those that did
// not pass.
func (a *all) table(parts []part) (open int) {
	w := tabwriter.NewWriter(a.out, 0, 8, 2, ' ', 0)
	fmt.Fprintf(w, "part\tresult\tseconds\twhen\t(tree %s)\n", a.tree)
	for _, p := range parts {
		n := a.notes[p.Name]
		switch {
		case n.Tree != a.tree || n.Run != p.Run:
			open++
			fmt.Fprintf(w, "%s\tnot run\t-\t-\t%s\n", p.Name, p.Run)
		case n.Passed:
			fmt.Fprintf(w, "%s\tpassed\t%.0f\t%s\t\n", p.Name, n.Seconds, n.At.Format("01-02 15:04"))
		default:
			open++
			fmt.Fprintf(w, "%s\tFAILED\t%.0f\t%s\t%s\n", p.Name, n.Seconds, n.At.Format("01-02 15:04"), a.log(p))
		}
	}
	_ = w.Flush() // a failed print cannot be reported
	return open
}
