// Command kubexm is right, but for its last import.
package main

import (
	_ "example.test/house/bundle"
	_ "example.test/house/manifest"
	_ "example.test/house/testdata/upstream"
)

func main() {}
