package main

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// number writes a value of the figure.
func (f figure) number(x float64) string {
	if f.Unit == "s" {
		return fmt.Sprintf("%.2f s", x)
	}
	if f.Unit != "" {
		return fmt.Sprintf("%.0f %s", x, f.Unit)
	}
	return fmt.Sprintf("%.3f", x)
}

// limit writes a value to reach.
func (f figure) limit(x float64) string {
	sign := "≤ "
	if f.Goal.AtLeast {
		sign = "≥ "
	}
	return sign + f.number(x)
}

// cells are the columns of a figure's line: what must be, what is beyond it, what
// was measured, the verdict.
func (f figure) cells() [4]string {
	must, better := "-", "-"
	if f.Goal != nil {
		must = f.limit(f.Goal.Must)
		if f.Goal.Beyond > 0 || f.Goal.Must == 0 {
			better = f.limit(f.Goal.Beyond)
		}
	}
	return [4]string{must, better, f.number(f.Ours), f.verdict()}
}

// table prints the figures beside those to reach.
func table(w io.Writer, figures []figure) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "FIGURE\tMUST\tBEYOND\tOURS\t\t")
	for _, f := range figures {
		c := f.cells()
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t\n", f.Name, c[0], c[1], c[2], c[3])
	}
	_ = t.Flush() // a terminal that is gone reads no table
}

// markdown prints the same for a document.
func markdown(w io.Writer, m measured) {
	fmt.Fprintf(w, "%.2f GB, median of %d rounds, %s.\n\n| figure | must | beyond | ours | |\n|---|---|---|---|---|\n",
		float64(m.Bytes)/1e9, len(m.Rounds), m.Machine)
	for _, f := range m.figures() {
		c := f.cells()
		fmt.Fprintf(w, "| %s | %s | %s | %s | %s |\n", f.Name, c[0], c[1], c[2], c[3])
	}
}
