package steptest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"

	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
)

// ImageDir is the folder of a runtime's image store: one file per name, with its digest
// and whether it is pinned. Like a database it is durable immediately; unpacked images,
// below snapshotDir, are not.
const (
	ImageDir    = "/var/lib/containerd/images"
	snapshotDir = "/var/lib/containerd/snapshots"
)

func image(ref string) string       { return ImageDir + "/" + fileName(ref) }
func snapshot(digest string) string { return snapshotDir + "/" + fileName(digest) }

func fileName(ref string) string { return strings.NewReplacer("/", "_", ":", "_").Replace(ref) }

// known is one name of an image.
type known struct {
	ref, digest string
	pinned      bool
}

// images returns all image names of a runtime.
func images(s *conntest.Sim) []known {
	var out []known
	for _, p := range s.Below(ImageDir) {
		if f := strings.Fields(s.Read(p)); len(f) > 1 {
			out = append(out, known{f[0], f[1], len(f) > 2})
		}
	}
	return out
}

// imageNamed returns the image of that name. It returns false if there is none.
func imageNamed(s *conntest.Sim, ref string) (known, bool) {
	all := images(s)
	i := slices.IndexFunc(all, func(k known) bool { return k.ref == ref })
	if i < 0 {
		return known{}, false
	}
	return all[i], true
}

// pinned reports whether a node has an unpacked image, by a part of its reference.
func (*Kube) pinned(s *conntest.Sim, part string) bool {
	return slices.ContainsFunc(images(s), func(k known) bool {
		return strings.Contains(k.ref, part) && s.Read(snapshot(k.digest)) != ""
	})
}

// ctr simulates ctr: it lists, tags, labels, imports and removes images, and lists the
// content store.
func (k *Kube) ctr(c call) connector.Result {
	if !k.engineRuns(c.sim) {
		return failed(1, "ctr: cannot access socket %s: no such file or directory", strings.TrimPrefix(part.RuntimeOf(k.cluster).Socket, "unix://"))
	}
	switch {
	case slices.Equal(c.words, []string{"content", "list"}):
		return contents(c.sim)
	case len(c.words) > 1 && c.words[1] == "import":
		return k.imports(c)
	case len(c.words) == 3 && c.words[1] == "remove":
		return removes(c)
	case slices.Contains(c.words, "label"):
		have, ok := imageNamed(c.sim, c.words[2])
		if !ok {
			return failed(1, "ctr: image %q: not found", c.words[2])
		}
		c.sim.AddFile(image(have.ref), have.ref+" "+have.digest+" pinned", 0o600)
		return connector.Result{}
	case slices.Contains(c.words, "tag"):
		have, ok := imageNamed(c.sim, c.words[2])
		if !ok {
			return failed(1, "ctr: image %q: not found", c.words[2])
		}
		_, force := c.flags["--force"]
		if _, there := imageNamed(c.sim, c.words[3]); there && !force {
			return failed(1, "ctr: image %q: already exists", c.words[3])
		}
		c.sim.AddFile(image(c.words[3]), c.words[3]+" "+have.digest, 0o600)
		return prints("%s\n", c.words[3])
	case slices.Contains(c.words, "list"):
		out := "REF TYPE DIGEST SIZE PLATFORMS LABELS\n"
		all := !slices.ContainsFunc(c.words, func(w string) bool { return strings.Contains(w, "pinned") })
		for _, i := range images(c.sim) {
			if i.pinned || all {
				out += fmt.Sprintf("%s application/vnd.oci.image.index.v1+json %s 300.0 KiB linux/amd64 io.cri-containerd.image=managed\n", i.ref, i.digest)
			}
		}
		return prints("%s", out)
	}
	return failed(1, "kube: nobody taught me ctr %s", strings.Join(c.words, " "))
}

// crictl simulates crictl: it pulls images by digest, through the mirror configuration of
// their registry. An existing image is not unpacked again. A removed image loses all its
// names.
func (k *Kube) crictl(c call) connector.Result {
	if len(c.words) == 2 && c.words[0] == "rmi" {
		have, ok := imageNamed(c.sim, c.words[1])
		if !ok || !loaded(c.sim, digest.Digest(have.digest)) {
			return failed(1, "no such image %s", c.words[1])
		}
		for _, i := range images(c.sim) {
			if i.digest == have.digest {
				c.sim.RemoveAll(image(i.ref))
			}
		}
		c.sim.RemoveAll(snapshot(have.digest))
		collect(c.sim)
		return connector.Result{}
	}
	if len(c.words) > 0 {
		if r, ok := k.crictlPods(c); ok {
			return r
		}
	}
	if k.stacked() && len(c.words) > 0 && (c.words[0] == "ps" && c.flags["--name"] == "^etcd$" || c.words[0] == "exec") {
		return k.storeContainer(c)
	}
	if len(c.words) != 2 || c.words[0] != "pull" {
		return failed(1, "kube: nobody taught me crictl %s", strings.Join(c.words, " "))
	}
	ref := c.words[1]
	domain, _, _ := strings.Cut(ref, "/")
	_, digest, byDigest := strings.Cut(ref, "@")
	switch {
	case !byDigest:
		return failed(1, "kube: %s is pulled by its tag, which is the word of whoever pushed last", ref)
	case !k.engineRuns(c.sim):
		return failed(1, "connect: connection refused")
	case !k.engine().mirrored(c.sim, domain):
		return failed(1, "failed to do request: dial tcp: lookup %s: no such host", domain)
	}
	if k.Holds != nil && !k.Holds(ref) {
		return failed(1, "failed to pull and unpack image %q: not found", ref)
	}
	if _, ok := imageNamed(c.sim, ref); !ok {
		c.sim.AddFile(snapshot(digest), "unpacked", 0o600)
		c.sim.AddFile(image(ref), ref+" "+digest, 0o600)
	}
	return prints("Image is up to date for %s\n", ref)
}
