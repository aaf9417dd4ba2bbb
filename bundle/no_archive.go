package bundle

import (
	"errors"
	"io"
	"os"
	"regexp"
	"unicode/utf8"
)

// ALock is the one document that a command takes in the place of a bundle.
const ALock = "a lock"

// kindLine is where a document says what it is.
var kindLine = regexp.MustCompile(`(?:^|[\s{,])"?kind"?:\s*"?(\w+)`)

// NoArchive says what a file is that is no archive; "" where it may be one, or is
// not there.
func NoArchive(path string) string {
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
	for len(begin) > 0 && !utf8.RuneStart(begin[len(begin)-1]) { // the end may be cut
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
		return ALock
	case "SiteInventory":
		return "the inventory of a site"
	}
	return "a document of kind " + string(kind[1])
}
