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
	"slices"
	"strings"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(command(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// command runs all parts, or one, and returns the exit code.
func command(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("testall", flag.ContinueOnError)
	fs.SetOutput(stderr)
	root := fs.String("root", ".", "the checkout")
	only := fs.String("part", "", "run this part alone")
	if err := fs.Parse(args); err != nil {
		return 2
	}
	a := &all{root: *root, out: stdout}
	parts, err := readParts(a.root)
	if err == nil && *only != "" {
		parts, err = pick(parts, *only)
	}
	if err == nil {
		a.tree, err = treeOf(ctx, a.root)
	}
	if err == nil {
		err = errors.Join(os.MkdirAll(filepath.Join(a.root, "build"), 0o755), a.open())
	}
	if err != nil {
		fmt.Fprintln(stderr, "error:", err)
		return 1
	}
	err = a.run(ctx, parts)
	open := a.table(parts)
	switch {
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(stderr, "interrupted; the same command continues")
		return 130
	case err != nil:
		fmt.Fprintln(stderr, "error:", err)
		return 1
	case open > 0:
		return 1
	}
	return 0
}

// pick returns one part.
func pick(parts []part, name string) ([]part, error) {
	at := slices.IndexFunc(parts, func(p part) bool { return p.Name == name })
	if at < 0 {
		var names []string
		for _, p := range parts {
			names = append(names, p.Name)
		}
		return nil, fmt.Errorf("no part %q; there are %s", name, strings.Join(names, ", "))
	}
	return parts[at : at+1], nil
}
