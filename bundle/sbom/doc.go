// Package sbom makes bills of materials, as SPDX 2.3 and CycloneDX 1.6: of what a lock
// pins, and of a Go program from what its build put into it. Bytes in, bytes out.
package sbom
