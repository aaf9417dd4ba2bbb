// Package fetch turns round and imports its user, and reaches too far.
package fetch

import (
	_ "example.test/house/bundle"
	_ "example.test/house/manifest"
	_ "example.test/house/versions"
)
