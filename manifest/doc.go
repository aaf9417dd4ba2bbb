// Package manifest owns the documents a person may read or commit, with no I/O
// beyond bytes in and bytes out:
//
//   - Cluster, what is wanted: decoded strictly, completed with defaults,
//     validated with every problem reported at once;
//   - Lock, which bytes that means: every artifact with version, platform,
//     address, size and digest, sorted so that a diff reads well.
//
// It also holds the words the other packages share: Platform, Kind, Need,
// Problem and Secret.
//
// How YAML is read strictly is package document's, which knows nothing of a cluster. It
// imports no other package of this module.
package manifest

//go:generate go run ../cmd/docgen config -docstrings docstrings_gen.go
//go:generate go run ../cmd/docgen config -pages ../docs
