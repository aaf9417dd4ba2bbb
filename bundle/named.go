package bundle

import (
	"fmt"
	"strings"
)

// named prefixes an error with its subject, unless the error already begins with it.
func named(what string, err error) error {
	if rest, ok := strings.CutPrefix(err.Error(), what); ok && (strings.HasPrefix(rest, " ") || strings.HasPrefix(rest, ":")) {
		return err
	}
	return fmt.Errorf("%s: %w", what, err)
}
