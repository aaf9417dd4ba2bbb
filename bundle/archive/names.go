package archive

import (
	"errors"
	"strings"
)

// The names of entries that are not blobs.
const (
	layoutName = "oci-layout"
	indexName  = "index.json"
	slotName   = "kubexm/signatures"

	blobPrefix   = "blobs/sha256/"
	digestPrefix = "sha256:"
)

// The limits of the format.
const (
	maxMembers   = 1 << 15
	maxOCILayout = 4 << 10
	maxIndexJSON = 1 << 20
	maxHeadBlob  = 64 << 20
	maxBlob      = 1 << 42 // the sum of 32,768 of these fits an int64
)

// checkHex accepts a SHA-256 of 64 lower-case hexadecimal digits.
func checkHex(s string) error {
	if len(s) != 64 {
		return errors.New("not 64 hexadecimal digits")
	}
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return errors.New("not lower-case hexadecimal")
		}
	}
	return nil
}

// checkDigest accepts "sha256:" and 64 lower-case digits.
func checkDigest(d string) error {
	hex, ok := strings.CutPrefix(d, digestPrefix)
	if !ok {
		return errors.New("not a sha256 digest")
	}
	return checkHex(hex)
}

// checkName accepts only the names that the format defines.
func checkName(name string) error {
	switch name {
	case layoutName, indexName, slotName:
		return nil
	}
	hex, ok := strings.CutPrefix(name, blobPrefix)
	if !ok {
		return errors.New("not a name that the format allows")
	}
	return checkHex(hex)
}

// blobName returns the entry name of a digest that checkDigest accepts.
func blobName(digest string) string { return blobPrefix + digest[len(digestPrefix):] }

// nameDigest returns the digest in an entry's name, or "" if it is not a blob.
func nameDigest(name string) string {
	if hex, ok := strings.CutPrefix(name, blobPrefix); ok {
		return digestPrefix + hex
	}
	return ""
}
