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
	var out []string
	for _, l := range a {
		out = append(out, "  - "+l)
	}
	for _, l := range b {
		out = append(out, "  + "+l)
	}
	if len(out) > maxDiff {
		out = append(out[:maxDiff], fmt.Sprintf("  … and %d lines more", len(out)-maxDiff))
	}
	return strings.Join(out, "\n")
}
