package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/registry"
)

// peerNames are the programs with their own rows.
var peerNames = []string{"oras", "hauler", "zarf"}

// findPeers looks for them on the PATH. They only run without network access, because they
// might connect to other machines.
func findPeers(stderr io.Writer) map[string]string {
	found, apart := map[string]string{}, isolated()
	for _, name := range peerNames {
		instead := "its rows are left out"
		if name == "oras" {
			instead = "its library stands in for it"
		}
		path, err := exec.LookPath(name)
		if err == nil {
			path, err = filepath.Abs(path)
		}
		switch {
		case err != nil:
			fmt.Fprintf(stderr, "%s is not on the PATH (make peers): %s\n", name, instead)
		case !apart:
			fmt.Fprintf(stderr, "%s is run in a network namespace alone, which takes root: %s\n", name, instead)
		default:
			found[name] = path
			fmt.Fprintf(stderr, "%s: %s\n", name, path)
		}
	}
	return found
}

// theirs is the work set for peers: names on the loopback server.
type theirs struct {
	images []string
	files  []string // addresses, sorted, without duplicates
}

// rename returns the names of a lock's images and files on the server.
func rename(l *manifest.Lock, base string) (theirs, error) {
	host := strings.TrimPrefix(base, "http://")
	var t theirs
	for _, im := range l.Images {
		name, err := registry.Mapper{Host: host}.Map(im.Reference)
		if err != nil {
			return t, err
		}
		t.images = append(t.images, name)
	}
	for _, a := range l.Artifacts {
		if rest, ok := strings.CutPrefix(a.Address, "https://"); ok {
			t.files = append(t.files, base+"/"+rest)
		}
	}
	slices.Sort(t.files)
	t.files = slices.Compact(t.files)
	return t, nil
}

// peerBuilds runs each peer to create its archive of the same work set.
func (w *work) peerBuilds(ctx context.Context, r *round) error {
	if path, ok := w.peers["hauler"]; ok {
		s, err := w.haulerBuild(ctx, path)
		if err != nil {
			return err
		}
		r.HaulerBuild = &s
	}
	if path, ok := w.peers["zarf"]; ok {
		s, err := w.zarfBuild(ctx, path)
		if err != nil {
			return err
		}
		r.ZarfBuild = &s
	}
	return nil
}

// home creates a folder for one run of a peer, and returns the function that removes it.
func (w *work) home(peer string) (dir, out string, remove func() error, err error) {
	dir = filepath.Join(w.dir, peer)
	out = filepath.Join(dir, "out")
	return dir, out, func() error { return os.RemoveAll(dir) }, errors.Join(os.RemoveAll(dir), os.MkdirAll(out, 0o750))
}
