// Package part holds facts about the parts of a cluster: which hosts run them, where they
// listen, and which files they leave on a host. A new runtime or network plugin is a row in a
// table of this package, and its steps. Callers use these facts and do not compare fields of
// the config themselves.
//
// It may import manifest.
package part
