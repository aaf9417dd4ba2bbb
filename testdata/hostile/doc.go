// Package hostile makes bundles that a hostile person would hand over: the rows of
// a table, each a lie of its own about a small true bundle, and any number of random
// changes of it. Its tests hold the real kubexm to refusing every one of them: with
// the code that the table names, before it calls a host, without a byte outside of
// where it was told to write, and in bounded memory and time. docs/reference/hostile-input.md
// is the table; the test writes it with -update.
//
// The writer here follows docs/reference/bundle-format.md and shares no code with
// bundle/archive, so that it can write what that one never would. That it writes the
// true bundle's own bytes is tested first.
//
// It is a tool of this repository and may import any package of the module.
package hostile
