// Command configdoc writes what is generated of the config: the docstrings of
// its types as Go, so that `kubexm config explain` has them, and the pages
// docs/config.md and docs/config-not-yet-built.md. `go generate ./manifest`
// runs it; it is no part of the product.
package main
