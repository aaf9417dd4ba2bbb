// Package versions_test: a comment here does not stand in for the package's own.
package versions

import _ "example.test/house/bundle"
