package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
)

func main() {
	root := flag.String("root", ".", "the folder of the module")
	page := flag.String("page", "docs/steps.md", "write the catalogue to this file")
	flag.Parse()
	if err := run(*root, *page); err != nil {
		fmt.Fprintln(os.Stderr, "stepsdoc:", err)
		os.Exit(1)
	}
}

func run(root, page string) error {
	c, err := load(root)
	if err != nil {
		return err
	}
	if err := errors.Join(c.problems()...); err != nil {
		return err
	}
	return os.WriteFile(page, []byte(c.page()), 0o644)
}
