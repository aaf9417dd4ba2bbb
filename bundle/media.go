package bundle

import (
	"path"
	"slices"

	"github.com/mensylisir/kubexm/manifest"
)

// The media types and artifact types of a bundle.
const (
	TypeRoot     = "application/vnd.kubexm.bundle.v1"
	typeMetadata = "application/vnd.kubexm.metadata.v1"
	typeArtifact = "application/vnd.kubexm.artifact.v1"

	mediaLock    = "application/vnd.kubexm.lock.v1+yaml"
	mediaConfig  = "application/vnd.kubexm.config.v1+yaml"
	mediaSummary = "application/vnd.kubexm.summary.v1+json"
	mediaFile    = "application/octet-stream"

	// Helm's own types, so that helm can pull a chart from any registry with a bundle.
	mediaChart     = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
	mediaChartMeta = "application/vnd.cncf.helm.config.v1+json"
)

// The annotations of the root's children.
const (
	annotationID       = "io.kubexm.artifact.id"
	annotationCluster  = "io.kubexm.cluster"
	annotationSerial   = "io.kubexm.serial"
	annotationPlatform = "io.kubexm.platform"
)

// AnnotationImage is containerd's annotation for an image's full reference.
const AnnotationImage = "io.containerd.image.name"

// packed are the extensions of compressed files. Compressing them again would cost time and
// gain nothing.
var packed = []string{".gz", ".tgz", ".zst", ".xz", ".bz2", ".zip", ".jar", ".rpm", ".deb"}

// compressFile reports whether a blob of an artifact is worth compressing. It reads only
// the lock, because the archive's layout must follow from the lock.
func compressFile(a manifest.Artifact, b manifest.Blob) bool {
	switch a.Kind {
	case manifest.Chart:
		return false
	case manifest.Packages:
		return !slices.Contains(packed, path.Ext(b.Name))
	}
	return a.Archive != "" || !slices.Contains(packed, path.Ext(a.Address))
}

// compressContent reports the same for an image's content: layers are compressed as
// published, except the rare plain tar.
func compressContent(mediaType string) bool {
	switch mediaType {
	case "application/vnd.oci.image.layer.v1.tar", "application/vnd.docker.image.rootfs.diff.tar":
		return true
	}
	return false
}
