// Package sbom generates bills of materials in SPDX 2.3 and CycloneDX 1.6: for the contents
// of a lock, and for a Go program from its build information. It reads and writes no files.
package sbom
