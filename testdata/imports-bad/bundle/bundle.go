// Package bundle may import what it sits on: its own fetch, and what is to its right.
package bundle

import (
	_ "example.test/house/bundle/fetch"
	_ "example.test/house/bundle/fetchtest"
	_ "example.test/house/cmd/kubexm"
	_ "example.test/house/elsewhere"
	_ "example.test/house/versions"
	_ "example.test/housekeeping"
)
