package images

import (
	"cmp"
	"strings"

	"github.com/mensylisir/kubexm/testdata/lab/components"
)

// recipe says how one image is made.
type recipe struct {
	repository string
	tag        string // {version} and {bare} as in the components' table, {short} without a last ".0"
	component  string
	files      map[string]string // program → path in the image
	entrypoint []string
	base       bool              // with a shell and the tools that set up a network
	links      map[string]string // path in the image → where it leads
	scripts    map[string]string // path in the image → text
	plain      map[string]string // name of a file of the component → path in the image
	trees      map[string]string // name of a folder of the component → path in the image
	packages   []string          // of Debian
	debian     map[string]string // path in one of them → path in the image
	env        []string
	user       string // whom its containers run as; "" is root
}

const binDir = "/usr/local/bin/"

// recipes list all images, by the names that kubeadm and flannel's manifest use.
var recipes = []recipe{
	controlPlane("kube-apiserver", false),
	controlPlane("kube-controller-manager", false),
	controlPlane("kube-scheduler", false),
	controlPlane("kube-proxy", true),
	{
		repository: "registry.k8s.io/etcd", tag: "{bare}-0", component: "etcd",
		files: map[string]string{"etcd": binDir + "etcd", "etcdctl": binDir + "etcdctl", "etcdutl": binDir + "etcdutl"},
	},
	{
		repository: "registry.k8s.io/coredns/coredns", tag: "{version}", component: "coredns",
		files: map[string]string{"coredns": "/coredns"}, entrypoint: []string{"/coredns"},
	},
	{
		repository: "registry.k8s.io/pause", tag: "{short}", component: "pause",
		files: map[string]string{"pause": "/pause"}, entrypoint: []string{"/pause"},
	},
	{
		repository: "ghcr.io/flannel-io/flannel", tag: "{version}", component: "flannel",
		files: map[string]string{"flanneld": "/opt/bin/flanneld"}, entrypoint: []string{"/opt/bin/flanneld"}, base: true,
	},
	{
		repository: "ghcr.io/flannel-io/flannel-cni-plugin", tag: "v1.6.2-flannel1", component: "flannel-cni-plugin",
		files: map[string]string{"flannel": "/flannel"}, base: true,
	},
	{
		repository: "lab.test/labtool", tag: "{version}", component: "labtool",
		files: map[string]string{"labtool": binDir + "labtool"}, base: true,
	},
}

func controlPlane(name string, base bool) recipe {
	return recipe{
		repository: "registry.k8s.io/" + name, tag: "{version}", component: components.Kubernetes,
		files: map[string]string{name: binDir + name}, base: base,
	}
}

// reference gives the name and tag that the image is published under.
func (r recipe) reference(c components.Component) string {
	bare := strings.TrimPrefix(c.Version, "v")
	return r.repository + ":" + strings.NewReplacer("{version}", c.Version, "{bare}", bare, "{short}", strings.TrimSuffix(bare, ".0")).Replace(r.tag)
}

// References lists the images by the names and tags that they are published under.
func References(rows []components.Component) ([]string, error) {
	var all []string
	for _, r := range recipes {
		c, err := components.Find(rows, r.component)
		if err != nil {
			return nil, err
		}
		all = append(all, r.reference(c))
	}
	return all, nil
}

// labels say in the image itself what it is.
func (r recipe) labels(c components.Component) map[string]string {
	return map[string]string{
		"org.opencontainers.image.title":       c.Name,
		"org.opencontainers.image.version":     c.Version,
		"org.opencontainers.image.description": "built by the kubexm lab from " + cmp.Or(c.Module, "its own source") + standsFor(c),
	}
}

func standsFor(c components.Component) string {
	if c.StandsFor == "" {
		return ""
	}
	return ", standing for " + c.StandsFor
}
