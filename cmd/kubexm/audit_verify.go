package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mensylisir/kubexm/cmd/kubexm/console"
	"github.com/mensylisir/kubexm/installer"
	"github.com/mensylisir/kubexm/installer/audit"
	"github.com/mensylisir/kubexm/manifest/refusal"
)

func (a *app) auditVerify() *cobra.Command {
	f := &clusterFlags{}
	var heads []string
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Check that nobody touched the audit log",
		Long: `Read the audit log to its end and check its chain: a line that was removed, changed, moved or put in
is named, and the exit code is 4. That the end was cut off is found by the heads that the journals of
runs hold. Who can write to the log can write to the journals beside it, and could make both anew: keep
the head that this command prints elsewhere, and give it back with --head.`,
		Example: `  kubexm audit verify
  kubexm audit verify --cluster demo --head 4711:9f86d081884c7d65…
  kubexm audit verify -o json | jq .head`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			known, err := audit.ParseHeads(heads)
			if err != nil {
				return err
			}
			w, err := f.folder(a)
			if err != nil {
				return err
			}
			return a.verifyAudit(w, known)
		},
	}
	f.add(cmd)
	cmd.Flags().StringArrayVar(&heads, "head", nil, "a head that was kept elsewhere, as LINES:SHA256; may be given several times")
	a.outputFlag(cmd, "text", "json")
	return cmd
}

func (a *app) verifyAudit(w installer.Workdir, known []audit.Anchor) error {
	log, err := w.OpenAudit()
	if err != nil {
		return err
	}
	if err := log.Close(); err != nil {
		return err
	}
	r, err := installer.Verify(w, known)
	if err != nil {
		return err
	}
	broken := &refusal.Error{Err: errSaid, Kind: refusal.Content}
	if a.structured() {
		if err := a.printValue(r); err != nil || len(r.Problems) == 0 {
			return err
		}
		return broken
	}
	a.sayAudit(w, r)
	if len(r.Problems) == 0 {
		return nil
	}
	for _, p := range r.Problems {
		fmt.Fprintf(a.err, "error: %s\n", p)
	}
	fmt.Fprintln(a.err, "  try   find out who could write there; keep the file as it is, and what else tells of the time: the journals beside it, the hosts' own logs")
	return broken
}

// sayAudit tells what a log holds.
func (a *app) sayAudit(w installer.Workdir, r audit.Report) {
	fmt.Fprintf(a.out, "%s\n", w.Audit())
	fmt.Fprintf(a.out, "  cluster  %s, %s to %s\n", r.Cluster, r.Since.UTC().Format(time.RFC3339), r.Until.UTC().Format(time.RFC3339))
	fmt.Fprintf(a.out, "  holds    %d lines: %s, %d of them looks\n", r.Head.Lines, console.Count(r.Commands, "command"), r.Looks)
	if r.Torn > 0 {
		fmt.Fprintf(a.out, "  cut off  %s while written: kubexm was killed, or the machine lost power\n", console.Count(r.Torn, "line"))
	}
	if len(r.Open) > 0 {
		fmt.Fprintf(a.out, "  open     %s that may change something, with no end on record: lines %s\n", console.Count(len(r.Open), "command"), numbers(r.Open))
	}
	chain := "whole"
	if len(r.Problems) > 0 {
		chain = "BROKEN"
	}
	fmt.Fprintf(a.out, "  chain    %s\n", chain)
	if r.Vouched > 0 {
		fmt.Fprintf(a.out, "  known    to line %d, by %s\n", r.Vouched, r.From)
	} else {
		fmt.Fprintln(a.out, "  known    by nobody: whether its end was cut off cannot be told")
	}
	fmt.Fprintf(a.out, "  head     %d:%s\n", r.Head.Lines, r.Head.SHA256)
}

// mostNumbers is how many numbers of lines are worth reading.
const mostNumbers = 12

func numbers(ns []int64) string {
	var out []string
	for _, n := range ns {
		if len(out) == mostNumbers {
			out = append(out, "…")
			break
		}
		out = append(out, strconv.FormatInt(n, 10))
	}
	return strings.Join(out, ", ")
}
