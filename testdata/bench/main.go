package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if code, mine := baseline(ctx, os.Args[1:]); mine {
		os.Exit(code)
	}
	os.Exit(start(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// start runs the bench where nothing leads out, if it may make such a place, and
// gives its exit code.
func start(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var err error
	switch {
	case isolated():
		err = loopback()
	case os.Geteuid() == 0:
		code, err := again(ctx, args, stdout, stderr)
		if err == nil {
			return code
		}
		fmt.Fprintln(stderr, "no network namespace:", err)
	}
	if err == nil {
		err = run(ctx, args, stdout, stderr)
	}
	if err != nil {
		fmt.Fprintln(stderr, "error:", err)
		return 1
	}
	return 0
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
	fs.StringVar(&o.output, "o", "text", "text, json or markdown")
	fs.Float64Var(&o.scale, "scale", 15, "how large files and layers are; 15 makes about 3.5 GB")
	fs.IntVar(&o.rounds, "rounds", 5, "how often each thing is measured")
	fs.StringVar(&o.wrap, "wrap", "", "words to put before each run of kubexm, such as a profiler's; {} is what is run: build, linked, rebuild, verify, delta, push")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if !slices.Contains([]string{"text", "json", "markdown"}, o.output) || o.rounds < 1 {
		return fmt.Errorf("-o %s -rounds %d: want text, json or markdown, and at least one round", o.output, o.rounds)
	}
	var err error
	if o.binary, err = filepath.Abs(o.binary); err != nil {
		return err
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
	m := measured{Rounds: rounds, Machine: lookAt(), Bytes: w.bytes, Delta: w.delta}
	switch o.output {
	case "json":
		return encode(stdout, m, len(w.content.list()))
	case "markdown":
		markdown(stdout, m)
	default:
		table(stdout, m.figures())
	}
	for _, line := range misses(m.figures()) {
		fmt.Fprintln(stderr, line)
	}
	return nil
}

func encode(to io.Writer, m measured, blobs int) error {
	enc := json.NewEncoder(to)
	enc.SetIndent("", "  ")
	return enc.Encode(struct {
		Content int64    `json:"contentBytes"`
		Blobs   int      `json:"blobs"`
		Machine machine  `json:"machine"`
		Delta   delta    `json:"delta"`
		Figures []figure `json:"figures"`
		Misses  []string `json:"missed,omitempty"`
		Rounds  []round  `json:"rounds"`
	}{m.Bytes, blobs, m.Machine, m.Delta, m.figures(), misses(m.figures()), m.Rounds})
}
