package upstream

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
)

// Folder serves the files below dir under an address without its scheme: with
// deb.example/debian it answers for https://deb.example/debian/…. Files may change
// while it serves. Faults and counts hold for them as for all else.
func (s *Server) Folder(address, dir string) error {
	address = strings.Trim(address, "/")
	if address == "" || strings.Contains(address, "://") {
		return fmt.Errorf("%q is no address without a scheme, as in deb.example/debian", address)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	at := "/" + address + "/"
	if old := s.folders[at]; old != nil {
		_ = old.Close() // nothing was written through it
	}
	s.folders[at] = root
	return nil
}

// serveFolder answers with a file of a folder, and reports whether there is one.
func (s *Server) serveFolder(m *meter, r *http.Request) bool {
	s.mu.Lock()
	var root *os.Root
	below := ""
	for at, x := range s.folders {
		if rest, ok := strings.CutPrefix(r.URL.Path, at); ok && (root == nil || len(rest) < len(below)) {
			root, below = x, rest
		}
	}
	s.mu.Unlock()
	if root == nil || below == "" {
		return false
	}
	f, err := root.Open(below)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }() // it was only read
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	m.size(info.Size())
	m.Header().Set("Content-Type", "application/octet-stream")
	m.Header().Set("ETag", fmt.Sprintf(`"%x-%x"`, info.ModTime().UnixNano(), info.Size())) // a date tells no two of one second apart
	if m.fault.NoRange {
		r = r.Clone(r.Context())
		r.Header.Del("Range")
	}
	c := m.fault.spoil(fileContent{f, info.Size()})
	http.ServeContent(m, r, "", info.ModTime(), io.NewSectionReader(c, 0, c.Size()))
	return true
}

// fileContent is a file as a Content.
type fileContent struct {
	*os.File
	size int64
}

// Size is the file's when it was opened.
func (f fileContent) Size() int64 { return f.size }
