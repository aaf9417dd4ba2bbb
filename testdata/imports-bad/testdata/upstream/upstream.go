// Package upstream is testdata: it may import everything but commands.
package upstream

import (
	_ "example.test/house/bundle"
	_ "example.test/house/cmd/kubexm"
)
