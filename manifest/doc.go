// Package manifest defines the documents that people read and commit. It encodes and decodes
// them, and does no other I/O:
//
//   - Cluster is the desired state. It is decoded strictly, completed with defaults and
//     validated; all problems are in one report.
//   - Lock is the exact content of a bundle: every artifact with version, platform, address,
//     size and digest, sorted so that diffs are small.
//
// It also defines types that other packages share: Platform, Kind, Need, Problem and Secret.
//
// Package document decodes the YAML. It does not depend on clusters, and imports no other
// package of this module.
package manifest

//go:generate go run ../cmd/docgen config -docstrings docstrings_gen.go
//go:generate go run ../cmd/docgen config -pages ../docs/reference
