package bundle

import (
	"fmt"
	"strings"
)

// named says what an error is about, where it does not begin with that itself.
func named(what string, err error) error {
	if rest, ok := strings.CutPrefix(err.Error(), what); ok && (strings.HasPrefix(rest, " ") || strings.HasPrefix(rest, ":")) {
		return err
	}
	return fmt.Errorf("%s: %w", what, err)
}
