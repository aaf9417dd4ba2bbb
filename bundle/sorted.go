package bundle

import (
	"fmt"
	"slices"
)

// sorted gives a sorted copy of xs by their text.
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
