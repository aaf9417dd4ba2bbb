package preflight

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/packages"
	"github.com/mensylisir/kubexm/steps/runner"
)

// Write is what a plan writes to one folder of some hosts.
type Write struct {
	What           string // "images", for findings
	Path           string
	Hosts          []string
	Needs          []manifest.Need // artifacts of the bundle: files, or images for the host's platform
	AllImages      bool            // every image of the bundle, for all platforms, compressed
	PlatformImages bool            // every image of the bundle, for the host's platform, compressed and unpacked
	Bytes          int64           // in addition to these
}

// Factors from an artifact's size in the bundle to its size on a disk.
const (
	// A node stores the compressed layers of an image and unpacks them beside:
	// kube-apiserver v1.32.2 has 95.2 MB, 3.5 times its 27.2 MB in gzip.
	imageTimes = 4.5
	// A package is copied to the host and unpacked. This is an estimate: package formats
	// do not record the unpacked size in a common way.
	packageTimes = 5
	// WALBytes is what etcd allocates for its write-ahead log: one segment of 64 MB in
	// use and one preallocated (SegmentSizeBytes in etcd's server/storage/wal).
	WALBytes = 2 * 64 * 1000 * 1000
)

// A kubelet evicts pods if less than this is free (its defaults for evictionHard).
const (
	nodeFree   = 10 // % of the disk with /var/lib/kubelet
	imageFree  = 15 // % of the disk with the runtime's images
	inodesFree = 5  // % of the inodes of either
)

// Free is how much of the disk with a folder must be free.
type Free struct {
	Path    string
	Percent int64
}

// FreeDisk returns what must be free on the disks of a node, or a kubelet evicts pods.
func FreeDisk(c *manifest.Cluster) []Free {
	return []Free{{part.RuntimeOf(c).DataDir, imageFree}, {"/var/lib/kubelet", nodeFree}}
}

func diskChecks() []Check {
	return []Check{
		{
			Name: "preflight.disk-space", Question: "whether each file system has room for what the plan writes to it", Levels: "error, warning", Bundle: true, Slow: true,
			Limits: fmt.Sprintf("error if less is free than is written; warning if afterwards less than %d%% of the disk with /var/lib/kubelet is free, or %d%% of the disk with the runtime's images", nodeFree, imageFree),
			Reads:  "df", Source: fmt.Sprintf("sizes in the bundle's lock file: programs once; images on nodes %.1f times (compressed and unpacked, measured on kube-apiserver); packages %d times; the registry's images once; %d MB for etcd's write-ahead log; images of add-ons on nodes only without a registry; the kubelet's evictionHard", imageTimes, packageTimes, WALBytes/1000/1000),
			look: checkSpace,
			needs: func(o Options) []manifest.Need {
				out := repositories(o)
				for _, w := range o.Writes {
					for _, n := range w.Needs {
						if !slices.Contains(out, n) {
							out = append(out, n)
						}
					}
				}
				return out
			},
		},
		{
			Name: "preflight.inodes", Question: "whether a node's file systems have free inodes", Levels: "error, warning", On: OnNodes,
			Limits: fmt.Sprintf("error at 0, warning under %d%%; file systems without a fixed number of inodes are not checked", inodesFree), Reads: "df -i", Source: "the kubelet's evictionHard",
			look: byFacts(checkInodes),
		},
	}
}

// share is what the plan writes to one file system.
type share struct {
	disk  runner.Disk
	bytes int64
	whats []string
}

func checkSpace(ctx context.Context, h *steps.Host, o Options) (steps.Findings, error) {
	ours, err := Joined(ctx, h)
	if err != nil || ours || h.Artifacts == nil { // on a host of this cluster most of it may exist
		return nil, err
	}
	shares := map[string]*share{}
	add := func(what, path string, bytes int64) {
		d, ok := h.Facts.Disk(path)
		if !ok || bytes == 0 {
			return
		}
		s := shares[d.Mount]
		if s == nil {
			s = &share{disk: d}
			shares[d.Mount] = s
		}
		s.bytes += bytes
		s.whats = append(s.whats, fmt.Sprintf("%s for %s", mib(bytes), what))
	}
	for _, w := range o.Writes {
		if !slices.Contains(w.Hosts, h.Name) {
			continue
		}
		bytes, err := w.size(h)
		if err != nil {
			return nil, err
		}
		add(w.What, w.Path, bytes)
	}
	packages, err := packageBytes(h, o)
	if err != nil {
		return nil, err
	}
	add("packages", "/usr", packages)
	var out steps.Findings
	for _, mount := range slices.Sorted(maps.Keys(shares)) {
		out = append(out, shares[mount].check(h)...)
	}
	return out, nil
}

// check compares what is written to a file system with its free space.
func (s *share) check(h *steps.Host) steps.Findings {
	if s.bytes > s.disk.Free {
		return steps.Findings{{What: fmt.Sprintf("%s has %s free and needs %s: %s", s.disk.Mount, mib(s.disk.Free), mib(s.bytes), strings.Join(s.whats, ", ")), Advice: "free disk space, or move the largest of these to a separate disk"}}
	}
	if !node(h) || s.disk.Size == 0 {
		return nil
	}
	left := 100 * (s.disk.Free - s.bytes) / s.disk.Size
	for _, x := range FreeDisk(h.Cluster) {
		if d, ok := h.Facts.Disk(x.Path); ok && d.Mount == s.disk.Mount && left < x.Percent {
			return steps.Findings{{What: fmt.Sprintf("%s will have %d%% free after %s more; a kubelet evicts pods when the disk with %s has less than %d%% free", s.disk.Mount, left, mib(s.bytes), x.Path, x.Percent), Advice: "free disk space", Warning: true}}
		}
	}
	return nil
}

// size returns the bytes that w takes on a disk of h.
func (w Write) size(h *steps.Host) (int64, error) {
	bytes := w.Bytes
	if w.AllImages {
		for _, im := range h.Artifacts.Images() {
			for _, p := range im.Platforms {
				bytes += p.Content + p.Size
			}
		}
	}
	if w.PlatformImages {
		for _, im := range h.Artifacts.Images() {
			bytes += onNode(im, h.Platform)
		}
	}
	for _, n := range w.Needs {
		if n.Kind != manifest.Image {
			b, err := h.Lookup(n)
			if err != nil {
				return 0, err
			}
			bytes += b.Size
			continue
		}
		im, err := h.Image(n)
		if err != nil {
			return 0, err
		}
		bytes += onNode(im, h.Platform)
	}
	return bytes, nil
}

// onNode returns the bytes that an image takes on a node.
func onNode(im manifest.ImagePin, on manifest.Platform) int64 {
	bytes := int64(0)
	for _, p := range im.Platforms {
		if p.Platform == on {
			bytes += int64(imageTimes * float64(p.Content))
		}
	}
	return bytes
}

// packageBytes returns the bytes that the packages of the bundle take on h.
func packageBytes(h *steps.Host, o Options) (int64, error) {
	system := packages.SystemOf(h.Facts)
	if !slices.Contains(o.Systems, system) {
		return 0, nil // another check reports it
	}
	repo, err := h.Repository(manifest.Need{Kind: manifest.Packages, Name: system})
	if err != nil {
		return 0, err
	}
	bytes := int64(0)
	for _, m := range repo.Members {
		if m.Package != "" {
			bytes += packageTimes * m.Size
		}
	}
	return bytes, nil
}

func mib(bytes int64) string { return fmt.Sprintf("%d MiB", (bytes+1<<20-1)>>20) }

func checkInodes(h *steps.Host) steps.Findings {
	var out steps.Findings
	seen := map[string]bool{}
	for _, path := range []string{"/var/lib/kubelet", part.RuntimeOf(h.Cluster).DataDir} {
		d, ok := h.Facts.Disk(path)
		if !ok || d.Inodes == 0 || seen[d.Mount] || 100*d.InodesFree >= inodesFree*d.Inodes {
			continue
		}
		seen[d.Mount] = true
		out = append(out, steps.Finding{
			What:   fmt.Sprintf("%s has %d of %d inodes free; a kubelet evicts pods under %d%%", d.Mount, d.InodesFree, d.Inodes, inodesFree),
			Advice: "delete small files on it, or recreate the file system with more inodes", Warning: d.InodesFree > 0,
		})
	}
	return out
}
