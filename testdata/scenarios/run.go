package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// event is a line of go test -json.
type event struct {
	Action, Test, Output string
}

// outcome is how the tests of a scenario ended.
type outcome struct {
	took   time.Duration
	passed map[string]bool
	failed []string // including subtests
	skip   string   // a test that did not run, and the reason
	log    string   // the file with the complete output
}

// fault returns why a run does not show its scenario; "" if it does.
func (o outcome) fault(tests []string) string {
	switch {
	case len(o.failed) > 0:
		return "failed: " + strings.Join(o.failed, ", ")
	case o.skip != "":
		return o.skip
	}
	for _, name := range tests {
		if !o.passed[name] {
			return name + " did not run"
		}
	}
	return ""
}

// hear processes one line of go test.
func (o *outcome) hear(e event) {
	top := e.Test != "" && !strings.Contains(e.Test, "/")
	switch {
	case e.Action == "fail" && e.Test != "":
		o.failed = append(o.failed, e.Test)
	case e.Action == "fail" && len(o.failed) == 0:
		o.failed = append(o.failed, "the package")
	case e.Action == "pass" && top:
		o.passed[e.Test] = true
	case e.Action == "skip" && top && o.skip == "":
		o.skip = e.Test + " was skipped"
	}
}

// runner runs the tests of a scenario.
type runner func(ctx context.Context, s scenario) (outcome, error)

// goTest runs them with the go command, in the checkout at root.
func goTest(root string) runner {
	return func(ctx context.Context, s scenario) (outcome, error) {
		o := outcome{passed: map[string]bool{}, log: filepath.Join("build", "scenarios", s.Name+".log")}
		if s.Prepare != "" {
			prepare := exec.CommandContext(ctx, "make", s.Prepare)
			prepare.Dir, prepare.Stdout, prepare.Stderr = root, os.Stderr, os.Stderr
			if err := prepare.Run(); err != nil {
				return o, fmt.Errorf("make %s: %w", s.Prepare, err)
			}
		}
		if err := os.MkdirAll(filepath.Join(root, filepath.Dir(o.log)), 0o755); err != nil {
			return o, err
		}
		log, err := os.Create(filepath.Join(root, o.log))
		if err != nil {
			return o, err
		}
		defer log.Close()
		cmd := exec.CommandContext(ctx, "go", "test", "-count=1", "-json", "-timeout", fmt.Sprintf("%dm", 10+3*s.Minutes), "-run", s.pattern(), "./testdata/e2e")
		cmd.Dir, cmd.Stderr, cmd.Env = root, os.Stderr, os.Environ()
		for name, value := range s.Env {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			return o, err
		}
		begin := time.Now()
		if err := cmd.Start(); err != nil {
			return o, err
		}
		lines := bufio.NewScanner(out)
		lines.Buffer(nil, 1<<24)
		for lines.Scan() {
			var e event
			if err := json.Unmarshal(lines.Bytes(), &e); err != nil { // of the build
				e = event{Output: lines.Text() + "\n"}
			}
			if _, err := log.WriteString(e.Output); err != nil {
				return o, errors.Join(err, cmd.Wait())
			}
			o.hear(e)
		}
		err = cmd.Wait()
		o.took = time.Since(begin)
		if ctx.Err() != nil {
			return o, ctx.Err()
		}
		if err != nil && len(o.failed) == 0 {
			o.failed = append(o.failed, "go test: "+err.Error())
		}
		return o, nil
	}
}

// limits bound when scenarios may start.
type limits struct {
	box      time.Duration // total time of all scenarios; 0: no limit
	deadline time.Time     // no scenario starts after it; zero: no limit
	now      func() time.Time
}

// fits reports whether a scenario may start. The first may take longer than the box, or it
// would never run.
func (l limits) fits(begun time.Time, first bool, expected time.Duration) bool {
	now := l.now()
	if !l.deadline.IsZero() && now.After(l.deadline) {
		return false
	}
	return l.box == 0 || first || now.Add(expected).Sub(begun) <= l.box
}

// walk runs scenarios one after another while they fit. It calls done for each that passed,
// and returns those that failed and those that were not started.
func walk(ctx context.Context, all []standing, l limits, run runner, say func(string), done func(standing, outcome) error) (failed, left []standing, err error) {
	begun := l.now()
	ran := 0
	for _, x := range all {
		if !l.fits(begun, ran == 0, x.expected()) {
			left = append(left, x)
			continue
		}
		ran++
		say(fmt.Sprintf("run    %s: %s (about %s)", x.Name, x.Says, x.expected().Round(time.Second)))
		o, err := run(ctx, x.scenario)
		if err != nil {
			return failed, left, err
		}
		if fault := o.fault(x.Tests); fault != "" {
			say(fmt.Sprintf("RED    %s after %s: %s; the complete output is in %s", x.Name, o.took.Round(time.Second), fault, o.log))
			failed = append(failed, x)
			continue
		}
		say(fmt.Sprintf("passed %s in %s", x.Name, o.took.Round(time.Second)))
		if err := done(x, o); err != nil {
			return failed, left, err
		}
	}
	return failed, left, nil
}

// names joins the names of scenarios.
func names(all []standing) string {
	var out []string
	for _, x := range all {
		out = append(out, x.Name)
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}
