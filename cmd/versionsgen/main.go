package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"

	"go.yaml.in/yaml/v3"
)

func main() {
	facts := flag.String("facts", "", "folder with checksums.yaml, kubeadm-images.yaml and addon-images.yaml")
	out := flag.String("out", "versions/data", "folder to write the matrix into")
	clones := flag.String("clones", "", "folder with clones of the repositories in source.yaml, as owner/name")
	tags := flag.String("tags", "", "file to write what the clones' tags hold into")
	charts := flag.String("charts", "", "file to write what the clones' indexes of charts hold into")
	flag.Parse()
	var err error
	switch {
	case *clones != "" && *tags != "":
		err = writeTags(context.Background(), *clones, *tags)
	case *clones != "" && *charts != "":
		err = writeCharts(context.Background(), *clones, *charts)
	case *facts != "":
		err = writeMatrix(*facts, *out)
	default:
		flag.Usage()
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "versionsgen:", err)
		os.Exit(1)
	}
}

func writeMatrix(factsDir, out string) error {
	sources, err := readSources()
	if err != nil {
		return err
	}
	tagged, err := readTags()
	if err != nil {
		return err
	}
	f, err := readFacts(factsDir)
	if err != nil {
		return err
	}
	charted, err := readCharts()
	if err != nil {
		return err
	}
	docs, err := generate(sources, f, tagged, charted)
	if err != nil {
		return err
	}
	return writeData(out, docs)
}

func writeTags(ctx context.Context, clones, file string) error {
	sources, err := readSources()
	if err != nil {
		return err
	}
	found, err := readClones(ctx, clones, sources)
	if err != nil {
		return err
	}
	return writeTable(file, tagsHeader, found)
}

func writeCharts(ctx context.Context, clones, file string) error {
	sources, err := readSources()
	if err != nil {
		return err
	}
	found, err := readIndexes(ctx, clones, sources)
	if err != nil {
		return err
	}
	return writeTable(file, chartsHeader, found)
}

// writeTable writes a table as YAML below a header.
func writeTable(file, header string, table any) error {
	b := bytes.NewBufferString(header)
	e := yaml.NewEncoder(b)
	e.SetIndent(2)
	if err := e.Encode(table); err != nil {
		return err
	}
	if err := e.Close(); err != nil {
		return err
	}
	return os.WriteFile(file, b.Bytes(), 0o644)
}
