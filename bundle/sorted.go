package bundle

import (
	"fmt"
	"slices"
)

// sorted returns the elements of xs as text, sorted.
func sorted[T any](xs []T) []string {
	out := make([]string, len(xs))
	for i, x := range xs {
		out[i] = fmt.Sprint(x)
	}
	slices.Sort(out)
	return out
}

func orNone(s string) string {
	if s == "" || s == "[]" {
		return "nothing"
	}
	return s
}
