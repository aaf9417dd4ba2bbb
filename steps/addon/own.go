package addon

import (
	"bytes"
	"context"
	"embed"
	"strconv"
	"text/template"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/kubectl"
)

// own are the manifests of add-ons of which the version matrix has only images. Upstream publishes
// theirs as charts or as files of a release, which have other version numbers.
//
//go:embed own/*.yaml
var own embed.FS

// ownManifest returns kubexm's own manifest of an add-on.
func ownManifest(name string) kubectl.Body {
	return func(_ context.Context, h *steps.Host) ([]byte, error) {
		text, err := own.ReadFile("own/" + name + ".yaml")
		if err != nil {
			return nil, err
		}
		t, err := template.New(name).Funcs(template.FuncMap{"quote": strconv.Quote, "image": func(name string) (string, error) {
			pin, err := h.Image(manifest.Need{Kind: manifest.Image, Name: name})
			return pin.Reference, err
		}}).Parse(string(text))
		if err != nil {
			return nil, err
		}
		var b bytes.Buffer
		err = t.Execute(&b, map[string]any{
			"NFSServer": h.Cluster.Spec.Storage.NFS.Server, "NFSPath": h.Cluster.Spec.Storage.NFS.Path, "NFSIsDefault": part.NFSIsDefault(h.Cluster),
			"BasePath": strconv.Quote(h.Cluster.Spec.Storage.OpenEBS.BasePath), "DefaultClass": part.OpenEBSIsDefault(h.Cluster),
		})
		return b.Bytes(), err
	}
}

// ownNeeds returns the images of kubexm's own manifest of an add-on.
func ownNeeds(name string) []manifest.Need {
	names := []string{name}
	if name == part.OpenEBS {
		names = []string{"openebs/provisioner-localpv", "openebs/linux-utils"}
	}
	var out []manifest.Need
	for _, n := range names {
		out = append(out, manifest.Need{Kind: manifest.Image, Name: n})
	}
	return out
}
