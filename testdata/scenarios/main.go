package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(command(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// errRed reports that scenarios have failed; the message has been printed.
var errRed = errors.New("scenarios are red")

func command(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("scenarios", flag.ContinueOnError)
	fs.SetOutput(stderr)
	root := fs.String("root", ".", "the checkout")
	box := fs.Duration("box", 10*time.Minute, "how long `run` starts further scenarios")
	if err := fs.Parse(args); err != nil {
		return 2
	}
	a := app{root: *root, out: stdout, run: goTest(*root)}
	err := a.load(ctx)
	if err == nil {
		switch what, rest := fs.Arg(0), fs.Args()[min(1, fs.NArg()):]; {
		case what == "list" && len(rest) == 0:
			a.list()
		case what == "lines" && len(rest) == 1:
			err = a.lines(rest[0])
		case what == "run" && len(rest) == 0:
			var l limits
			if l, err = limitsOf(*box, os.Getenv("STAGE_DEADLINE")); err == nil {
				err = a.runDue(ctx, l)
			}
		case what == "show" && len(rest) <= 1:
			err = a.show(ctx, strings.Join(rest, ""))
		default:
			fmt.Fprintln(stderr, "usage: scenarios list | lines NAME | run | show [NAME]")
			return 2
		}
	}
	switch {
	case errors.Is(err, errRed):
		return 1
	case err != nil:
		fmt.Fprintln(stderr, "error:", err)
		return 1
	}
	return 0
}

// limitsOf reads until when scenarios may start: seconds since 1970.
func limitsOf(box time.Duration, deadline string) (limits, error) {
	l := limits{box: box, now: time.Now}
	if deadline != "" {
		n, err := strconv.ParseInt(deadline, 10, 64)
		if err != nil {
			return l, fmt.Errorf("STAGE_DEADLINE: %w", err)
		}
		l.deadline = time.Unix(n, 0)
	}
	return l, nil
}

// app is the table, the recorded results of its scenarios, and the runner.
type app struct {
	root   string
	out    io.Writer
	run    runner
	table  *table
	record record
	all    []standing
}

// load computes all effects.
func (a *app) load(ctx context.Context) error {
	begin := time.Now()
	var err error
	if a.table, err = readTable(a.root); err != nil {
		return err
	}
	if a.record, err = readRecord(a.root); err != nil {
		return err
	}
	stamps, err := stampsOf(ctx, a.root)
	if err != nil {
		return err
	}
	all, err := effects(a.root, a.table, teller(ctx, a.root, a.table), stamps)
	if err != nil {
		return err
	}
	a.all = standings(a.table, all, a.record)
	a.say(fmt.Sprintf("effects of %d scenarios computed in %.1f s", len(a.all), time.Since(begin).Seconds()))
	return nil
}

func (a *app) say(what string) { fmt.Fprintln(a.out, what) }

func (a *app) list() {
	w := tabwriter.NewWriter(a.out, 0, 8, 2, ' ', 0)
	for _, x := range a.all {
		last := "-"
		if !x.was.At.IsZero() {
			last = x.was.At.Format("2006-01-02")
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d lines\t%s\n", x.Name, x.state, last, x.expected().Round(time.Second), len(x.effect.lines), strings.Join(x.why, ", "))
	}
	_ = w.Flush() // a failed print cannot be reported
}

func (a *app) lines(name string) error {
	if _, err := a.table.find(name); err != nil {
		return err
	}
	for _, x := range a.all {
		if x.Name == name {
			a.say(strings.Join(x.effect.lines, "\n"))
		}
	}
	return nil
}

// runDue runs what is due. A pass counts for this run only.
func (a *app) runDue(ctx context.Context, l limits) error {
	a.list()
	failed, left, err := walk(ctx, of(a.all, isDue), l, a.run, a.say, func(standing, outcome) error { return nil })
	if err != nil {
		return err
	}
	if never := of(a.all, isNever); len(never) > 0 {
		a.say(fmt.Sprintf("NEVER SHOWN: %s. Nothing holds them until somebody runs: make shown", names(never)))
	}
	red := len(failed)
	for _, x := range left {
		if x.mayWait(time.Now()) {
			a.say(fmt.Sprintf("DUE    %s: %s changed and there was no time for it. Run within %d days of %s: %s",
				x.Name, strings.Join(x.why, ", "), patienceDays, x.was.At.Format("2006-01-02"), x.command()))
			continue
		}
		red++
		a.say(fmt.Sprintf("RED    %s is due (%s changed) and there was no time for it. Run: %s", x.Name, strings.Join(x.why, ", "), x.command()))
	}
	for _, x := range failed {
		a.say("RED    " + x.Name + " does not pass. Run: " + x.command())
	}
	if red > 0 {
		return errRed
	}
	return nil
}

// show runs what is due or was never shown, or one scenario, and records what passed.
func (a *app) show(ctx context.Context, name string) error {
	todo := of(a.all, isDue, isNever)
	if name != "" {
		if _, err := a.table.find(name); err != nil {
			return err
		}
		todo = nil
		for _, x := range a.all {
			if x.Name == name {
				todo = append(todo, x)
			}
		}
	}
	failed, _, err := walk(ctx, todo, limits{now: time.Now}, a.run, a.say, func(x standing, o outcome) error {
		var err error
		if a.record, err = readRecord(a.root); err != nil { // another process may have changed the file
			return err
		}
		a.record[x.Name] = shown{Effect: x.effect.Sum, Parts: x.effect.Parts, Seconds: int(o.took.Seconds()), At: time.Now().UTC().Truncate(time.Second)}
		return a.record.write(a.root)
	})
	if err != nil {
		return err
	}
	if len(failed) > 0 {
		a.say("not shown: " + names(failed))
		return errRed
	}
	return nil
}
