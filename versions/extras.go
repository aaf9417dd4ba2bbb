package versions

import (
	"fmt"
	"path"
	"strings"

	"github.com/mensylisir/kubexm/manifest"
)

// fromConfig stands in the place of a version for what a config brings itself.
const fromConfig = "config"

// extras adds what the config names by address: images and files of
// spec.bundle, and manifests of add-ons. They belong to every set.
func (l *locker) extras() {
	var sets []string
	for _, s := range l.lock.Sets {
		sets = append(sets, s.Name)
	}
	for i, image := range l.cluster.Spec.Bundle.Images {
		digest, trust := image.Digest, manifest.FromConfig
		pinned := l.catalog.images[image.Reference]
		if digest == "" {
			digest, trust = pinned, manifest.FromCatalog
		}
		if digest != "" && pinned != "" && digest != pinned {
			l.say(manifest.Problem{
				Path:    fmt.Sprintf("spec.bundle.images[%d].digest", i),
				Message: fmt.Sprintf("is %s, but %s is pinned to %s", digest, image.Reference, pinned), Advice: "keep one of the two",
			})
		}
		l.image(image.Reference, image.Reference, digest, trust, sets)
	}
	for i, file := range l.cluster.Spec.Bundle.Files {
		l.ownFile(fmt.Sprintf("spec.bundle.files[%d]", i), manifest.Artifact{
			Name: file.Name, Version: fromConfig, Platform: file.Platform, Address: file.Address, SHA256: file.SHA256, Sets: sets,
		})
	}
	for i, addon := range l.cluster.Spec.Addons {
		if addon.Source == "" {
			continue
		}
		at := fmt.Sprintf("spec.addons[%d].source", i)
		switch {
		case isManifest(addon):
			l.ownFile(at, manifest.Artifact{Name: addon.Name, Version: fromConfig, Address: addon.Source, Sets: sets})
		case strings.Contains(addon.Source, "://"):
			l.say(manifest.Problem{
				Severity: manifest.Warning, Path: at, Message: "charts from a config are not carried yet",
				Advice: "name the images that " + addon.Name + " needs under spec.bundle.images",
			})
		}
	}
}

// isManifest reports whether an add-on's source is a manifest to download.
func isManifest(a manifest.Addon) bool {
	web := strings.HasPrefix(a.Source, "https://") || strings.HasPrefix(a.Source, "http://")
	if a.Type != "" {
		return web && a.Type == "yaml"
	}
	ext := path.Ext(a.Source)
	return web && len(a.Values) == 0 && (ext == ".yaml" || ext == ".yml")
}

// ownFile adds a file that the config names by address.
func (l *locker) ownFile(at string, a manifest.Artifact) {
	a.Kind = manifest.File
	a.ID = artifactID(a.Kind, a.Name, a.Version, a.Platform)
	if a.SHA256 != "" {
		a.Trust = manifest.FromConfig
	}
	if known, ok := l.artifacts[a.ID]; ok {
		if known.Address != a.Address || known.SHA256 != a.SHA256 {
			l.say(manifest.Problem{Path: at, Message: "a second file is called " + a.Name, Advice: "give it a name of its own"})
		}
		return
	}
	l.artifacts[a.ID] = &a
}
