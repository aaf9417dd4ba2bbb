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
		Short: "Verify that the audit log was not modified",
		Long: `Read the complete audit log and verify its hash chain. Lines that were removed, changed, moved or
inserted are reported, and the exit code is 4.

Truncation is detected with the chain heads that the journals of runs contain. A user who can write
to the log can also write to the journals beside it, and could rewrite both. Store the head that this
command prints on another machine, and pass it with --head the next time.`,
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
	cmd.Flags().StringArrayVar(&heads, "head", nil, "a head that was stored elsewhere, as LINES:SHA256; may be given several times")
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
	broken := &refusal.Error{Err: errReported, Kind: refusal.Content}
	if a.structured() {
		if err := a.printValue(r); err != nil || len(r.Problems) == 0 {
			return err
		}
		return broken
	}
	a.printAuditReport(w, r)
	if len(r.Problems) == 0 {
		return nil
	}
	for _, p := range r.Problems {
		fmt.Fprintf(a.err, "error: %s\n", p)
	}
	fmt.Fprintln(a.err, "  note  find out who can write to this file; preserve it, the journals beside it and the hosts' own logs as evidence")
	return broken
}

// printAuditReport prints a summary of a log and of its verification.
func (a *app) printAuditReport(w installer.Workdir, r audit.Report) {
	fmt.Fprintf(a.out, "%s\n", w.Audit())
	fmt.Fprintf(a.out, "  cluster  %s, %s to %s\n", r.Cluster, r.Since.UTC().Format(time.RFC3339), r.Until.UTC().Format(time.RFC3339))
	fmt.Fprintf(a.out, "  lines    %d: %s, %d of them read-only\n", r.Head.Lines, console.FormatCount(r.Commands, "command"), r.ReadOnly)
	if r.Torn > 0 {
		fmt.Fprintf(a.out, "  torn     %s, written incompletely: kubexm was killed, or this machine lost power\n", console.FormatCount(r.Torn, "line"))
	}
	if len(r.Open) > 0 {
		fmt.Fprintf(a.out, "  open     %s that may have changed a host, without a recorded end: lines %s\n", console.FormatCount(len(r.Open), "command"), numbers(r.Open))
	}
	chain := "intact"
	if len(r.Problems) > 0 {
		chain = "BROKEN"
	}
	fmt.Fprintf(a.out, "  chain    %s\n", chain)
	if r.Confirmed > 0 {
		fmt.Fprintf(a.out, "  known    to line %d, by %s\n", r.Confirmed, r.From)
	} else {
		fmt.Fprintln(a.out, "  known    no head is known: a truncated log cannot be detected")
	}
	fmt.Fprintf(a.out, "  head     %d:%s\n", r.Head.Lines, r.Head.SHA256)
}

// mostNumbers is the maximum number of line numbers that are printed.
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
