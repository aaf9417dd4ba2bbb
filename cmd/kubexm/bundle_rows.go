package main

import (
	"cmp"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/mensylisir/kubexm/bundle"
	"github.com/mensylisir/kubexm/cmd/kubexm/console"
	"github.com/mensylisir/kubexm/manifest"
)

// printRows writes rows as a table. With wide it lists each package, and prints digests
// in full.
func (a *app) printRows(rows []bundle.Row, wide bool) error {
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	line := func(kind manifest.Kind, name, version, platform string, size int64, last string) {
		bytes := "?"
		if size > 0 {
			bytes = bundle.Bytes(size)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", kind, name, version, cmp.Or(platform, "any"), bytes, last)
	}
	shown := func(digest string) string {
		switch digest = strings.TrimPrefix(digest, "sha256:"); {
		case digest == "":
			return "?"
		case wide:
			return digest
		}
		return digest[:12]
	}
	fmt.Fprintln(w, "KIND\tNAME\tVERSION\tPLATFORM\tSIZE\tDIGEST")
	for _, r := range rows {
		last := shown(r.Digest)
		switch {
		case len(r.Packages) > 0:
			last = console.FormatCount(len(r.Packages), "package")
		case len(r.Want) > 0:
			last = console.FormatCount(len(r.Want), "package") + " and dependencies"
		}
		line(r.Kind, r.Name, r.Version, r.Platform, r.Size, last)
		if !wide {
			continue
		}
		for _, p := range r.Packages {
			line(r.Kind, "  "+p.Name, p.Version, p.Arch, p.Size, shown(p.Digest))
		}
	}
	return w.Flush()
}
