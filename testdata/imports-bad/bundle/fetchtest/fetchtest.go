// Package fetchtest helps tests, and may import what it helps to test.
package fetchtest

import _ "example.test/house/bundle/fetch"
