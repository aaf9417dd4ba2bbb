package main

import (
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/mensylisir/kubexm/versions"
)

// shownMinors is the number of Kubernetes minor versions with defaults in the matrix.
const shownMinors = 3

func (a *app) printMatrix(rows []versions.MatrixRow, minors []string) error {
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprint(w, "COMPONENT\tVERSIONS")
	for _, k := range minors {
		fmt.Fprintf(w, "\tFOR %s", versions.Minor(k))
	}
	fmt.Fprintln(w, "\tABOUT")
	for _, r := range rows {
		count := strconv.Itoa(r.Versions)
		if r.Kind == versions.Package {
			count = "package"
		}
		fmt.Fprintf(w, "%s\t%s", r.Component, count)
		for _, k := range minors {
			fmt.Fprintf(w, "\t%s", dash(r.Defaults[versions.Minor(k)]))
		}
		about := r.About
		if r.Unresolved != "" {
			about = "unresolved: " + r.Unresolved
		}
		fmt.Fprintf(w, "\t%s\n", about)
	}
	return w.Flush()
}

// printReleases writes rows as a table; with named it has a column for the component.
func (a *app) printReleases(rows []versions.ReleaseRow, named bool) error {
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	if named {
		fmt.Fprint(w, "COMPONENT\t")
	}
	fmt.Fprintln(w, "VERSION\tKUBERNETES\tPLATFORMS\tIMAGES\tDIGEST")
	for _, r := range rows {
		if named {
			fmt.Fprint(w, r.Component+"\t")
		}
		images := ""
		if n := len(r.Images); n > 0 {
			images = strconv.Itoa(n)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", dash(r.Version), dash(r.CompatibleVersions()), dash(strings.Join(r.Platforms, ", ")), dash(images), dash(r.DigestSources()))
	}
	return w.Flush()
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
