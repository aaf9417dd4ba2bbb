package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "docgen:", err)
		os.Exit(1)
	}
}

// run executes the subcommand in the first argument.
func run(args []string) error {
	if len(args) > 0 {
		switch args[0] {
		case "config":
			return config(args[1:])
		case "steps":
			return stepsPage(args[1:])
		}
	}
	return errors.New("usage: docgen config [-source DIR] [-docstrings FILE] [-pages DIR] | docgen steps [-root DIR] [-page FILE]")
}

// config writes the docstrings and the pages of the config, each to the path of its flag.
func config(args []string) error {
	fs := flag.NewFlagSet("config", flag.ContinueOnError)
	source := fs.String("source", ".", "the folder of package manifest")
	docstrings := fs.String("docstrings", "", "write the docstrings to this Go file")
	pages := fs.String("pages", "", "write the pages into this folder")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if *docstrings != "" {
		text, err := docstringsFile(*source)
		if err != nil {
			return err
		}
		if err := os.WriteFile(*docstrings, text, 0o644); err != nil {
			return err
		}
	}
	if *pages == "" {
		return nil
	}
	for name, text := range allPages() {
		if err := os.WriteFile(*pages+"/"+name, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// stepsPage writes the catalogue of steps.
func stepsPage(args []string) error {
	fs := flag.NewFlagSet("steps", flag.ContinueOnError)
	root := fs.String("root", ".", "the folder of the module")
	page := fs.String("page", "docs/reference/steps.md", "write the catalogue to this file")
	if err := fs.Parse(args); err != nil {
		return err
	}
	c, err := load(*root)
	if err != nil {
		return err
	}
	if err := errors.Join(c.problems()...); err != nil {
		return err
	}
	return os.WriteFile(*page, []byte(c.page()), 0o644)
}
