package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if code, mine := baseline(ctx, os.Args[1:]); mine {
		os.Exit(code)
	}
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	binary string
	config string
	dir    string
	output string
	scale  float64
	rounds int
	wrap   string
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var o options
	fs := flag.NewFlagSet("bench", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.StringVar(&o.binary, "kubexm", "build/kubexm", "the binary that is measured")
	fs.StringVar(&o.config, "f", "testdata/configs/quickstart.yaml", "the cluster config that the work set is made for")
	fs.StringVar(&o.dir, "dir", "build", "where a folder of the work set and of what is built is made, and removed again")
	fs.StringVar(&o.output, "o", "text", "text or json")
	fs.Float64Var(&o.scale, "scale", 15, "how large files and layers are; 15 makes about 3.5 GB")
	fs.IntVar(&o.rounds, "rounds", 5, "how often each thing is measured")
	fs.StringVar(&o.wrap, "wrap", "", "words to put before each build, such as a profiler's")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if o.output != "text" && o.output != "json" || o.rounds < 1 {
		return fmt.Errorf("-o %s -rounds %d: want text or json, and at least one round", o.output, o.rounds)
	}
	var err error
	if o.binary, err = filepath.Abs(o.binary); err != nil {
		return err
	}
	for _, peer := range []string{"hauler", "zarf", "oras"} {
		if _, err := exec.LookPath(peer); err != nil {
			fmt.Fprintf(stderr, "%s is not on the PATH: its rows are left out\n", peer)
		} else {
			fmt.Fprintf(stderr, "%s is on the PATH, and this bench has no rows for it yet\n", peer)
		}
	}
	w, err := openWork(ctx, o, stderr)
	if err != nil {
		return err
	}
	defer w.close()
	var rounds []round
	for i := range o.rounds {
		r, err := w.round(ctx)
		if err != nil {
			return fmt.Errorf("round %d: %w", i+1, err)
		}
		fmt.Fprintf(stderr, "round %d of %d: %s\n", i+1, o.rounds, r)
		rounds = append(rounds, r)
	}
	figures := figuresOf(rounds)
	if o.output == "json" {
		enc := json.NewEncoder(stdout)
		enc.SetIndent("", "  ")
		return enc.Encode(struct {
			Content int64    `json:"contentBytes"`
			Files   int      `json:"blobs"`
			Figures []figure `json:"figures"`
			Rounds  []round  `json:"rounds"`
		}{w.bytes, len(w.content.list()), figures, rounds})
	}
	table(stdout, figures)
	return nil
}
