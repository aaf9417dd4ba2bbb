package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"time"
)

// event is a line that `-o json` prints of a step.
type event struct {
	Type    string `json:"type"`
	Node    string `json:"node"`
	Host    string `json:"host"`
	Outcome string `json:"outcome"`
}

// follow runs kubexm to its end and gives its events. at is told of each as it
// comes, counted from 1, with what kills kubexm; it may be nil.
func (g *clusterSite) follow(ctx context.Context, args []string, at func(n int, e event, kill func())) (ended, []event) {
	c := g.command(ctx, g.binary, args)
	var stderr bytes.Buffer
	c.Stderr = &stderr
	out, err := c.StdoutPipe()
	begin := time.Now()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		return ended{code: -1, stderr: err.Error()}, nil
	}
	var all []event
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil || e.Type != "step" {
			continue
		}
		all = append(all, e)
		if at != nil {
			at(len(all), e, func() { _ = c.Process.Kill() }) // it may have ended
		}
	}
	err = c.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return ended{code: -1, stderr: fmt.Sprint(err, lines.Err())}, all
	}
	return ended{code: c.ProcessState.ExitCode(), stderr: stderr.String(), took: time.Since(begin)}, all
}
