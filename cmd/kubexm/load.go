package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/mensylisir/kubexm/bundle"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/refusal"
)

// notBuilt is the prefix of warnings about fields that have no effect yet.
const notBuilt = "accepted, not yet built"

// loadCluster reads a config, "-" from standard input, and applies the overriding
// sources file if sources is not empty. Warnings are printed; those about fields without
// effect are summarized on one line, since `kubexm config validate` lists them.
func (a *app) loadCluster(path, sources string) (*manifest.Cluster, error) {
	c, problems, err := a.decodeCluster(path)
	if err != nil {
		return nil, err
	}
	if err := problems.Err(); err != nil {
		return nil, err
	}
	waiting := 0
	for _, p := range problems {
		if strings.HasPrefix(p.Message, notBuilt) {
			waiting++
			continue
		}
		fmt.Fprintln(a.err, p.String())
	}
	if waiting > 0 {
		fmt.Fprintf(a.err, "%s: note: %d fields of the config have no effect yet; `kubexm config validate -f %s` lists them\n", path, waiting, path)
	}
	if sources == "" {
		return c, nil
	}
	over, err := a.loadSources(sources)
	if err != nil {
		return nil, err
	}
	c.Spec.Sources = over.MergeOver(c.Spec.Sources)
	return c, nil
}

// decodeCluster reads a config and returns it with all its problems.
func (a *app) decodeCluster(path string) (*manifest.Cluster, manifest.Problems, error) {
	r, closing, err := a.openInput(path)
	if err != nil {
		return nil, nil, err
	}
	defer closing()
	c, problems := manifest.Decode(r)
	return c, problems.In(path), nil
}

// problemsOf reads a document of kind Cluster or Sources, and returns its problems and
// those of local charts. The cluster is nil for Sources and for a config with errors.
func (a *app) problemsOf(path string) (*manifest.Cluster, manifest.Problems, error) {
	r, closing, err := a.openInput(path)
	if err != nil {
		return nil, nil, err
	}
	defer closing()
	var text bytes.Buffer
	problems := manifest.Check(io.TeeReader(r, &text))
	var c *manifest.Cluster
	if problems.Err() == nil {
		if c, _ = manifest.Decode(&text); c != nil { // nil for a document of kind Sources
			problems = append(problems, bundle.CheckValues(c, folderOf(path))...)
			problems.Sort()
		}
	}
	return c, problems.In(path), nil
}

func (a *app) loadSources(path string) (manifest.Sources, error) {
	r, closing, err := a.openInput(path)
	if err != nil {
		return manifest.Sources{}, err
	}
	defer closing()
	s, problems := manifest.DecodeSources(r)
	if err := problems.In(path).Err(); err != nil {
		return manifest.Sources{}, err
	}
	a.printWarnings(problems)
	return s, nil
}

// openInput opens a file, or standard input for "-".
func (a *app) openInput(path string) (io.Reader, func(), error) {
	if path == "-" {
		return a.in, func() {}, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, &refusal.Error{Err: err, Kind: refusal.Usage, Advice: "specify a file, or - for standard input; `kubexm config init` writes an example"}
	}
	return f, func() { _ = f.Close() }, nil
}
