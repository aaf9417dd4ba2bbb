package network

import (
	"context"
	_ "embed"
	"strings"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/kubectl"
)

// multusText is kubexm's own manifest: that of upstream's releases names an image without a version.
//
//go:embed multus.yaml
var multusText string

var multusNeeds = []manifest.Need{{Kind: manifest.Image, Name: part.Multus}}

func multusManifest(_ context.Context, h *steps.Host) ([]byte, error) {
	pin, err := h.Image(multusNeeds[0])
	if err != nil {
		return nil, err
	}
	return []byte(strings.ReplaceAll(multusText, "IMAGE", pin.Reference)), nil
}

// Multus gives pods additional interfaces, by objects of the kind NetworkAttachmentDefinition. On each
// node its configuration is made of the pod network's, which must exist: its pods end until then.
func Multus() steps.Step {
	return kubectl.Apply("network.install-multus", multusNeeds, multusManifest)
}

// WaitMultus waits until multus runs on all nodes.
func WaitMultus() steps.Step {
	return kubectl.WaitFor("network.wait-multus", multusNeeds, multusManifest)
}
