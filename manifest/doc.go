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
// manifest is the last folder of the import line: it imports no other package
// of this module.
package manifest

//go:generate go run ../cmd/configdoc -docstrings docstrings_gen.go
//go:generate go run ../cmd/configdoc -pages ../docs
