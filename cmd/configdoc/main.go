package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	source := flag.String("source", ".", "the folder of package manifest")
	docstrings := flag.String("docstrings", "", "write the docstrings to this Go file")
	pages := flag.String("pages", "", "write the pages into this folder")
	flag.Parse()
	if err := run(*source, *docstrings, *pages); err != nil {
		fmt.Fprintln(os.Stderr, "configdoc:", err)
		os.Exit(1)
	}
}

func run(source, docstrings, pages string) error {
	if docstrings != "" {
		text, err := docstringsFile(source)
		if err != nil {
			return err
		}
		if err := os.WriteFile(docstrings, text, 0o644); err != nil {
			return err
		}
	}
	if pages == "" {
		return nil
	}
	for name, text := range allPages() {
		if err := os.WriteFile(pages+"/"+name, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}
