package images

import (
	"archive/tar"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// made is the time of every file: the bytes are the same every day.
var made = time.Date(2025, time.January, 1, 0, 0, 0, 0, time.UTC)

// layer makes a layer of files, path in the image → file on disk, and links,
// path → where it leads. A path of files with a slash at its end is an empty folder.
func layer(files, links map[string]string) (v1.Layer, error) {
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		r, w := io.Pipe()
		go func() { w.CloseWithError(write(w, files, links)) }()
		return r, nil
	}, tarball.WithMediaType(types.OCILayer))
}

func write(w io.Writer, files, links map[string]string) error {
	t := tar.NewWriter(w)
	names := slices.Concat(slices.Collect(maps.Keys(files)), slices.Collect(maps.Keys(links)))
	slices.Sort(names)
	seen := map[string]bool{}
	for _, name := range names {
		if err := folders(t, seen, name); err != nil {
			return err
		}
		if strings.HasSuffix(name, "/") { // path.Dir of it is the folder itself
			continue
		}
		h := &tar.Header{Name: strings.TrimPrefix(name, "/"), ModTime: made, Mode: 0o777, Typeflag: tar.TypeSymlink, Linkname: links[name]}
		if h.Linkname != "" {
			if err := t.WriteHeader(h); err != nil {
				return err
			}
			continue
		}
		if err := writeFile(t, h, files[name]); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return t.Close()
}

func writeFile(t *tar.Writer, h *tar.Header, from string) error {
	f, err := os.Open(from)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	h.Typeflag, h.Size, h.Mode = tar.TypeReg, info.Size(), int64(info.Mode().Perm())
	if err := t.WriteHeader(h); err != nil {
		return err
	}
	_, err = io.Copy(t, f)
	return err
}

// folders writes the folders above name that are not there yet, the outermost first.
func folders(t *tar.Writer, seen map[string]bool, name string) error {
	dir := path.Dir(name)
	if dir == "/" || seen[dir] {
		return nil
	}
	if err := folders(t, seen, dir); err != nil {
		return err
	}
	seen[dir] = true
	return t.WriteHeader(&tar.Header{Name: strings.TrimPrefix(dir, "/") + "/", Typeflag: tar.TypeDir, Mode: 0o755, ModTime: made})
}
