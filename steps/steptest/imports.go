package steptest

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
)

// ContentDir is the folder of a runtime's content store: one file per blob, named by its
// digest. A committed blob is durable.
const ContentDir = "/var/lib/containerd/content"

const importHelp = "NAME:\n   ctr images import - Import images\n\nOPTIONS:\n   --all-platforms  Imports content for all platforms, false by default\n" +
	"   --local  Run import locally rather than through transfer API (default: false)\n   --platform value  Imports content for specific platform\n"

func contentFile(d digest.Digest) string { return ContentDir + "/" + d.Encoded() }

// blobOf returns a blob of the content store.
func blobOf(s *conntest.Sim, d digest.Digest) ([]byte, bool) {
	f, ok := s.File(contentFile(d))
	return f.Data, ok
}

// imports simulates `ctr images import --local`, as containerd's client implements it
// (client/import.go and cmd/ctr/commands/images/import.go of 2.1.9). Every file of the tar
// becomes a blob under its digest, regardless of its name. All blobs that index.json
// references for the platform must exist. The images get their names and are unpacked.
// Existing names keep their labels.
func (k *Kube) imports(c call) connector.Result {
	if _, ok := c.flags["--help"]; ok {
		return prints("%s", importHelp)
	}
	for flag := range c.flags {
		if !slices.Contains([]string{"--namespace", "--local", "--platform", "-"}, flag) {
			return failed(1, "kube: nobody taught me ctr images import %s", flag)
		}
	}
	if _, ok := c.flags["-"]; !ok || len(c.words) != 2 {
		return failed(1, "kube: an archive is imported from standard input alone")
	}
	collect(c.sim) // garbage collection may happen at any time
	index, err := ingest(c.sim, c.stdin)
	if err != nil {
		return failed(1, "ctr: %v", err)
	}
	w := walk{sim: c.sim, platforms: []string{c.flags["--platform"]}}
	if w.platforms[0] == "" {
		w.platforms = []string{"linux/amd64", "linux/386"} // as an amd64 can run both
	}
	for _, d := range index.Manifests {
		if err := w.visit(d); err != nil {
			return failed(1, "ctr: %v", err)
		}
	}
	for _, d := range index.Manifests {
		ref := d.Annotations["io.containerd.image.name"]
		if ref == "" {
			return failed(1, "kube: an image without a name")
		}
		text := ref + " " + d.Digest.String()
		if old, ok := imageNamed(c.sim, ref); ok && old.pinned {
			text += " pinned"
		}
		c.sim.AddFile(image(ref), text, 0o600)
	}
	for _, d := range w.leaves {
		if b, ok := blobOf(c.sim, d.Digest); !ok || int64(len(b)) != d.Size {
			return failed(1, "ctr: failed to extract layer: content digest %s: not found", d.Digest)
		}
	}
	var out strings.Builder
	for _, d := range index.Manifests {
		if _, ok := c.sim.File(snapshot(d.Digest.String())); !ok {
			c.sim.AddFile(snapshot(d.Digest.String()), "unpacked", 0o600)
		}
		fmt.Fprintf(&out, "unpacking %s (%s)...done\n", d.Annotations["io.containerd.image.name"], d.Digest)
	}
	return prints("%s", out.String())
}

// ingest adds the blobs of an OCI layout to the store.
func ingest(s *conntest.Sim, stdin []byte) (v1.Index, error) {
	var layout v1.ImageLayout
	var index v1.Index
	seen := false
	for r := tar.NewReader(bytes.NewReader(stdin)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return index, err
		}
		b, err := io.ReadAll(r)
		if err != nil {
			return index, fmt.Errorf("failed to ingest %q: %w", h.Name, err)
		}
		switch path.Clean(h.Name) {
		case v1.ImageLayoutFile:
			err = json.Unmarshal(b, &layout)
		case v1.ImageIndexFile:
			seen, err = true, json.Unmarshal(b, &index)
		default:
			s.AddFile(contentFile(digest.FromBytes(b)), string(b), 0o444)
		}
		if err != nil {
			return index, fmt.Errorf("untar %q: %w", h.Name, err)
		}
	}
	switch {
	case layout.Version != v1.ImageLayoutVersion:
		return index, errors.New("unrecognized image format")
	case !seen:
		return index, fmt.Errorf("missing index.json in OCI layout %s", layout.Version)
	}
	return index, nil
}

// walk collects the blobs of an image for a platform.
type walk struct {
	sim       *conntest.Sim
	platforms []string
	leaves    []v1.Descriptor // configs and layers; their existence is not checked
}

type document struct {
	Manifests []v1.Descriptor `json:"manifests"`
	Config    v1.Descriptor   `json:"config"`
	Layers    []v1.Descriptor `json:"layers"`
}

func documentOf(s *conntest.Sim, d digest.Digest) (doc document, err error) {
	b, ok := blobOf(s, d)
	if !ok {
		return doc, fmt.Errorf("content digest %s: not found", d)
	}
	return doc, json.Unmarshal(b, &doc)
}

func (w *walk) visit(d v1.Descriptor) error {
	doc, err := documentOf(w.sim, d.Digest)
	if err != nil {
		return err
	}
	if doc.Config.Digest != "" {
		w.leaves = append(append(w.leaves, doc.Config), doc.Layers...)
		return nil
	}
	found := false
	for _, m := range doc.Manifests {
		if m.Platform != nil && !slices.Contains(w.platforms, m.Platform.OS+"/"+m.Platform.Architecture) {
			continue
		}
		found = true
		if err := w.visit(m); err != nil {
			return err
		}
	}
	if !found {
		return fmt.Errorf("no match for platform in manifest %s", d.Digest)
	}
	return nil
}

// reached returns the blobs that images reference.
func reached(s *conntest.Sim) map[string]bool {
	out := map[string]bool{}
	var mark func(digest.Digest)
	mark = func(d digest.Digest) {
		if b, ok := blobOf(s, d); !ok || out[contentFile(d)] || len(b) == 0 {
			return
		}
		out[contentFile(d)] = true
		doc, err := documentOf(s, d)
		if err != nil {
			return // a layer
		}
		for _, m := range slices.Concat(doc.Manifests, doc.Layers) {
			mark(m.Digest)
		}
		if doc.Config.Digest != "" {
			mark(doc.Config.Digest)
		}
	}
	for _, i := range images(s) {
		mark(digest.Digest(i.digest))
	}
	return out
}

// collect deletes the blobs that no image references.
func collect(s *conntest.Sim) {
	keep := reached(s)
	for _, p := range s.Below(ContentDir) {
		if !keep[p] {
			s.RemoveAll(p)
		}
	}
}

// contents lists the store.
func contents(s *conntest.Sim) connector.Result {
	out := ""
	for _, p := range s.Below(ContentDir) {
		out += "sha256:" + path.Base(p) + "\n"
	}
	return prints("%s", out)
}

// loaded reports whether the CRI lists an image, for which its config must exist. Pulled
// images have no blobs in the simulation.
func loaded(s *conntest.Sim, d digest.Digest) bool {
	doc, err := documentOf(s, d)
	switch {
	case err != nil:
		return true
	case doc.Config.Digest != "":
		_, ok := blobOf(s, doc.Config.Digest)
		return ok
	}
	return slices.ContainsFunc(doc.Manifests, func(m v1.Descriptor) bool {
		_, ok := blobOf(s, m.Digest)
		return ok && loaded(s, m.Digest)
	})
}

// removes simulates `ctr images remove`: it removes one name, and all blobs that are no
// longer referenced.
func removes(c call) connector.Result {
	have, ok := imageNamed(c.sim, c.words[len(c.words)-1])
	if !ok {
		return failed(1, "ctr: image %q: not found", c.words[len(c.words)-1])
	}
	c.sim.RemoveAll(image(have.ref))
	if !slices.ContainsFunc(images(c.sim), func(i known) bool { return i.digest == have.digest }) {
		c.sim.RemoveAll(snapshot(have.digest))
	}
	collect(c.sim)
	return prints("%s\n", have.ref)
}
