package bundle

import (
	"errors"
	"io"
	"os"
	"regexp"
	"unicode/utf8"
)

// LockDescription is DescribeNonArchive's result for a lock, the one document that some
// commands accept in place of a bundle.
const LockDescription = "a lock"

// kindLine matches the kind of a document.
var kindLine = regexp.MustCompile(`(?:^|[\s{,])"?kind"?:\s*"?(\w+)`)

// DescribeNonArchive returns what a file is if it is not an archive; "" if it may be one or
// does not exist.
func DescribeNonArchive(path string) string {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return ""
	case info.IsDir():
		return "a folder"
	case !info.Mode().IsRegular():
		return ""
	}
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	begin := make([]byte, 4096)
	n, err := io.ReadFull(f, begin)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return ""
	}
	begin = begin[:n]
	for len(begin) > 0 && !utf8.RuneStart(begin[len(begin)-1]) { // drop an incomplete character at the end
		begin = begin[:len(begin)-1]
	}
	kind := kindLine.FindSubmatch(begin)
	if kind == nil || !utf8.Valid(begin[:max(len(begin)-1, 0)]) {
		return ""
	}
	switch string(kind[1]) {
	case "Cluster":
		return "a cluster config"
	case "Lock":
		return LockDescription
	case "SiteInventory":
		return "the inventory of a site"
	}
	return "a document of kind " + string(kind[1])
}
