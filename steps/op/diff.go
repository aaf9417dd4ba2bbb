package op

import (
	"fmt"
	"strings"
)

// maxDiff is the maximum number of changed lines in a diff.
const maxDiff = 40

// lineDiff returns the removed and added lines between two texts, without the common
// lines at the start and the end.
func lineDiff(before, after string) string {
	a, b := strings.Split(strings.TrimSuffix(before, "\n"), "\n"), strings.Split(strings.TrimSuffix(after, "\n"), "\n")
	if before == "" {
		a = nil
	}
	if after == "" {
		b = nil
	}
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	out := marked(nil, "  - ", a)
	out = marked(out, "  + ", b)
	if n := len(a) + len(b); n > maxDiff {
		out = append(out, fmt.Sprintf("  … and %d lines more", n-maxDiff))
	}
	return strings.Join(out, "\n")
}

// marked appends lines with a mark to out, as far as it takes them.
func marked(out []string, mark string, lines []string) []string {
	for _, l := range lines[:min(len(lines), maxDiff-len(out))] {
		out = append(out, mark+l)
	}
	return out
}
