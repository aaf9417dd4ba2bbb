package versions

import (
	"cmp"
	"fmt"
	"path"
	"strings"

	"github.com/mensylisir/kubexm/manifest"
)

// fromConfig is the version of artifacts that the config specifies by address.
const fromConfig = "config"

// extras adds what the config specifies by address: images and files of spec.bundle, and
// manifests and charts of add-ons. They belong to every set.
func (l *locker) extras() {
	sets := l.sets()
	for i, image := range l.cluster.Spec.Bundle.Images {
		digest, trust := image.Digest, manifest.FromConfig
		pinned := l.catalog.images[image.Reference]
		if digest == "" {
			digest, trust = pinned, manifest.FromCatalog
		}
		if digest != "" && pinned != "" && digest != pinned {
			l.report(manifest.Problem{
				Path:    fmt.Sprintf("spec.bundle.images[%d].digest", i),
				Message: fmt.Sprintf("is %s, but %s is pinned to %s", digest, image.Reference, pinned), Advice: "keep one of the two",
			})
		}
		l.image(image.Reference, image.Reference, digest, trust, sets)
	}
	for i, file := range l.cluster.Spec.Bundle.Files {
		l.ownFile(fmt.Sprintf("spec.bundle.files[%d]", i), manifest.Artifact{
			Kind: manifest.File, Name: file.Name, Version: fromConfig, Platform: file.Platform, Address: file.Address, SHA256: file.SHA256, Sets: sets,
		})
	}
	for i, addon := range l.cluster.Spec.Addons {
		at := fmt.Sprintf("spec.addons[%d]", i)
		switch {
		case addon.Source == "":
		case addon.Form() == manifest.Chart:
			l.chart(at, addon, sets)
		default:
			l.ownFile(at+".source", manifest.Artifact{Kind: manifest.File, Name: addon.Name, Version: fromConfig, Address: addon.Source, Sets: sets})
		}
	}
}

// chart adds the chart of an add-on. The address of a chart in a repository is resolved later,
// from the repository's index.
func (l *locker) chart(at string, addon manifest.Addon, sets []string) {
	a := manifest.Artifact{Kind: manifest.Chart, Name: addon.Name, Version: cmp.Or(addon.Version, fromConfig), Sets: sets}
	switch rest, oci := strings.CutPrefix(addon.Source, "oci://"); {
	case oci:
		base := path.Base(rest)
		tagged := strings.ContainsAny(base, ":@")
		switch {
		case !tagged && addon.Version == "":
			l.unversioned(at, addon)
			return
		case !tagged:
			// Tags cannot contain a plus sign; Helm replaces it by an underscore.
			a.Address = addon.Source + ":" + strings.ReplaceAll(addon.Version, "+", "_")
		default:
			a.Address = addon.Source
		}
	case addon.Packed():
		a.Address = addon.Source
	case addon.Version == "":
		l.unversioned(at, addon)
		return
	default:
		a.Repository = strings.TrimSuffix(addon.Source, "/")
	}
	l.ownFile(at+".source", a)
}

func (l *locker) unversioned(at string, addon manifest.Addon) {
	l.report(manifest.Problem{Path: at + ".version", Message: "is missing, but " + addon.Source + " may contain several versions",
		Advice: "write the chart's exact version, as listed by `helm search repo` or in the chart's documentation"})
}

// ownFile adds a file that the config specifies by address.
func (l *locker) ownFile(at string, a manifest.Artifact) {
	a.ID = artifactID(a.Kind, a.Name, a.Version, a.Platform)
	if a.SHA256 != "" {
		a.Trust = manifest.FromConfig
	}
	if known, ok := l.artifacts[a.ID]; ok {
		if known.Address != a.Address || known.Repository != a.Repository || known.SHA256 != a.SHA256 {
			l.report(manifest.Problem{Path: at, Message: "another " + string(a.Kind) + " has the same name: " + a.Name, Advice: "give it a unique name"})
		}
		return
	}
	l.artifacts[a.ID] = &a
}
