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
	"strings"
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

// start runs the bench without network access, if it can create a namespace, and returns its
// exit code.
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
	only   []string
	runs   string // the test binary that runs over simulated hosts
	runsIn string // the folder of its package
}

// The parts of the bench, for -only.
const (
	partBuild = "build"
	partPush  = "push"
	partPeers = "peers"
	partHosts = "hosts"
	partLarge = "large"
)

var allParts = []string{partBuild, partPush, partPeers, partHosts, partLarge}

// has reports whether a part is measured.
func (o options) has(part string) bool { return slices.Contains(o.only, part) }

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
	only := fs.String("only", strings.Join(allParts, ","), "the parts that are measured")
	fs.StringVar(&o.runs, "runs", "build/installer.test", "package installer's tests as a program (go test -c), which run over simulated hosts")
	fs.StringVar(&o.runsIn, "runs-in", "installer", "the folder of that package")
	fs.StringVar(&o.wrap, "wrap", "", "words to put before each run of kubexm, such as a profiler's; {} is what is run: build, linked, rebuild, verify, delta, push, upload, plan, run")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if !slices.Contains([]string{"text", "json", "markdown"}, o.output) || o.rounds < 1 {
		return fmt.Errorf("-o %s -rounds %d: want text, json or markdown, and at least one round", o.output, o.rounds)
	}
	o.only = strings.Split(*only, ",")
	for _, part := range o.only {
		if !slices.Contains(allParts, part) {
			return fmt.Errorf("-only %s: there is no part %q, but %s", *only, part, strings.Join(allParts, ", "))
		}
	}
	var err error
	for _, path := range []*string{&o.binary, &o.runs, &o.runsIn} {
		if *path, err = filepath.Abs(*path); err != nil {
			return err
		}
	}
	if _, err := os.Stat(o.runs); err != nil && o.has(partLarge) {
		fmt.Fprintf(stderr, "the rows of many hosts are left out: %v\n", err)
		o.only = slices.DeleteFunc(o.only, func(p string) bool { return p == partLarge })
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
	m := measured{options: o, Rounds: rounds, Machine: lookAt(), Bytes: w.bytes, Delta: w.delta}
	blobs := 0
	if w.content != nil {
		blobs = len(w.content.list())
	}
	switch o.output {
	case "json":
		return encode(stdout, m, blobs)
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
