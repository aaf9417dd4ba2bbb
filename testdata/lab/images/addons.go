package images

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/testdata/lab/components"
)

// nobody is whom the images of add-ons run as, upstream's too.
const nobody = "65534:65534"

var metricsServer = recipe{
	repository: "registry.k8s.io/metrics-server/metrics-server", tag: "{version}", component: "metrics-server",
	files: map[string]string{"metrics-server": "/metrics-server"}, entrypoint: []string{"/metrics-server"}, user: nobody,
}

var nodeFeatureDiscovery = recipe{
	repository: "registry.k8s.io/nfd/node-feature-discovery", tag: "{version}", component: "node-feature-discovery",
	files: map[string]string{"nfd-master": "/usr/bin/nfd-master", "nfd-worker": "/usr/bin/nfd-worker", "nfd-gc": "/usr/bin/nfd-gc"}, user: nobody,
}

var metalLBController = recipe{
	repository: "quay.io/metallb/controller", tag: "{version}", component: "metallb",
	files: map[string]string{"controller": "/controller"}, entrypoint: []string{"/controller"},
}

var metalLBSpeaker = recipe{
	repository: "quay.io/metallb/speaker", tag: "{version}", component: "metallb",
	files: map[string]string{"speaker": "/speaker"}, entrypoint: []string{"/speaker"},
}

// addons are images of real programs, by the names that charts ask for.
var addons = []recipe{
	metricsServer, nodeFeatureDiscovery, metalLBController, metalLBSpeaker,
}

// StandIn is an image that has another one's name and none of its programs: its
// containers stay up, and answer probes.
type StandIn struct {
	Image   string   `yaml:"image"`             // the reference that is asked for, in full
	Listens []int    `yaml:"listens,omitempty"` // ports that are probed, by HTTP or HTTPS
	Ends    bool     `yaml:"ends,omitempty"`    // its containers do their work and end
	Files   []string `yaml:"files,omitempty"`   // paths that containers are started by
	Shell   bool     `yaml:"shell,omitempty"`   // has a shell with the commonest tools
}

// standIn is the component that runs in stand-ins.
const standIn = "standin"

// Addons gives an OCI layout with the images of real add-ons, and stand-ins.
func Addons(ctx context.Context, cache, rootfs string, rows []components.Component, standIns []StandIn, log io.Writer) (string, error) {
	all := slices.Clone(addons)
	for _, s := range standIns {
		r, err := s.recipe()
		if err != nil {
			return "", err
		}
		all = append(all, r)
	}
	return layoutOf(ctx, all, cache, rootfs, nil, rows, log)
}

func (s StandIn) recipe() (recipe, error) {
	at := strings.LastIndexByte(s.Image, ':')
	if at < strings.LastIndexByte(s.Image, '/') || strings.Contains(s.Image, "@") {
		return recipe{}, fmt.Errorf("stand-in %s: name a tag", s.Image)
	}
	r := recipe{
		repository: s.Image[:at], tag: s.Image[at+1:], component: standIn, files: map[string]string{standIn: "/" + standIn},
		links: map[string]string{}, entrypoint: []string{"/" + standIn}, base: s.Shell, user: nobody,
		env: []string{"STAND_IN_LISTENS=" + strings.Trim(fmt.Sprint(s.Listens), "[]")},
	}
	for _, path := range s.Files {
		r.links[path] = "/" + standIn
	}
	if s.Ends {
		r.env = append(r.env, "STAND_IN_ENDS=1")
	}
	return r, nil
}
