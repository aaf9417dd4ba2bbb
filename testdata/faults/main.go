package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == naiveName {
		os.Exit(naive(os.Args[2:]))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run tries what the arguments pick, and gives the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("faults", flag.ContinueOnError)
	fs.SetOutput(stderr)
	binary := fs.String("kubexm", "build/kubexm", "the binary that is tried")
	brittle := fs.String("brittle", "build/brittle", "the program that serves a disk that fails")
	config := fs.String("f", "testdata/configs/quickstart.yaml", "the cluster config that is built")
	progress := fs.String("progress", "build/faults.jsonl", "where results are kept; one that is there of the same programs goes on")
	only := fs.String("only", "", "rows whose names hold this text")
	if err := fs.Parse(args); err != nil {
		return 2
	}
	p, err := programsAt(*binary, *brittle)
	if err != nil {
		fmt.Fprintln(stderr, "error:", err)
		return 1
	}
	failed, err := try(ctx, p, *config, *progress, *only, stdout, stderr)
	switch {
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(stderr, "interrupted; run the same command again to go on")
		return 130
	case err != nil:
		fmt.Fprintln(stderr, "error:", err)
		return 1
	case failed > 0:
		return 1
	}
	return 0
}

// try walks the rows and prints their table.
func try(ctx context.Context, p programs, config, progress, only string, stdout, stderr io.Writer) (failed int, err error) {
	begin := time.Now()
	of, err := p.name()
	if err != nil {
		return 0, err
	}
	var rows []row
	for _, r := range everyRow() { //nolint:contextcheck // a row waits in the context of the request that it answers
		if strings.Contains(r.name(), only) {
			rows = append(rows, r)
		}
	}
	if len(rows) == 0 {
		return 0, fmt.Errorf("no row has a name with %q", only)
	}
	n, err := openNotes(progress, of)
	if err != nil {
		return 0, err
	}
	if len(n.done) > 0 {
		fmt.Fprintf(stderr, "going on: %d rows are in %s\n", len(n.done), progress)
	}
	dir, err := os.MkdirTemp("", "kubexm-faults-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	l, err := openLab(ctx, p, config, dir)
	if err != nil {
		return 0, err
	}
	if err := n.walk(ctx, l, rows, stderr); err != nil {
		return 0, err
	}
	failed = n.table(stdout, rows)
	fmt.Fprintf(stderr, "took %s\n", time.Since(begin).Round(time.Second))
	return failed, nil
}

// everyRow is the whole table.
func everyRow() []row {
	rows := upstreamRows()
	rows = append(rows, registryRows()...)
	rows = append(rows, pushRows()...)
	rows = append(rows, diskRows()...)
	rows = append(rows, pairRows()...)
	rows = append(rows, claimRows()...)
	rows = append(rows, killRows()...)
	rows = append(rows, cutRows()...)
	rows = append(rows, powerRows()...)
	rows = append(rows, eioRows()...)
	rows = append(rows, installRows()...)
	rows = append(rows, auditRows()...)
	rows = append(rows, hostRows()...)
	rows = append(rows, clockRows()...)
	rows = append(rows, secretRows()...)
	return append(rows, resumeRows()...)
}

// programs are the paths of what is run.
type programs struct {
	binary  string // kubexm
	brittle string
	self    string // this program
}

func programsAt(binary, brittle string) (p programs, err error) {
	if p.self, err = os.Executable(); err != nil {
		return p, err
	}
	if p.binary, err = filepath.Abs(binary); err != nil {
		return p, err
	}
	p.brittle, err = filepath.Abs(brittle)
	return p, err
}

// name names the programs by what they are: with another of them old results say
// nothing.
func (p programs) name() (string, error) {
	var out []string
	for _, path := range []string{p.binary, p.self, p.brittle} {
		hash, err := hashFile(path)
		if err != nil {
			return "", err
		}
		out = append(out, hash[:16])
	}
	return strings.Join(out, "+"), nil
}
