package containerd

import (
	"bytes"
	"context"
	"embed"
	"path"
	"strings"
	"text/template"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/op"
	"github.com/mensylisir/kubexm/steps/runner"
	"github.com/mensylisir/kubexm/steps/runtime/cri"
)

//go:embed templates
var files embed.FS

var templates = template.Must(template.New("").Option("missingkey=error").ParseFS(files, "templates/*.tmpl"))

// Unit is the runtime's systemd unit.
const Unit = "containerd.service"

func binaries() []op.Resource {
	blob := func(dir, need string) op.Resource {
		return op.Blob{Path: path.Join(dir, path.Base(need)), Need: manifest.Need{Kind: manifest.Binary, Name: need}}
	}
	rs := []op.Resource{
		blob("/usr/local/bin", "containerd/containerd"),
		blob("/usr/local/bin", "containerd/containerd-shim-runc-v2"),
		blob("/usr/local/bin", "containerd/ctr"),
		blob("/usr/local/sbin", "runc"),
		cri.Crictl(),
		blob("/usr/local/bin", "nerdctl/nerdctl"),
	}
	return append(rs, cri.Plugins()...)
}

// Binaries installs containerd, runc, crictl, nerdctl and the CNI plugins on a node.
func Binaries() steps.Step {
	return op.Ensure("containerd.install-binaries", binaries(), op.Upload)
}

// RemoveBinaries removes containerd, runc, crictl, nerdctl and the CNI plugins from a node.
func RemoveBinaries() steps.Step { return op.Remove("containerd.remove-binaries", binaries()) }

func service(c *manifest.Cluster, m *cri.Mirrors) []op.Resource {
	runtime := part.RuntimeOf(c)
	rs := []op.Resource{
		op.Dir{Path: "/etc/cni", Own: true},                                        // pod networks write their configuration into it
		op.Dir{Path: "/opt/containerd", Attr: runner.Attr{Mode: 0o711}, Own: true}, // containerd creates it if it is missing
		op.Dir{Path: "/etc/containerd", Own: true},
		op.Dir{Path: "/etc/containerd/certs.d", Own: true},
		op.Dir{Path: runtime.DataDir, Attr: runner.Attr{Mode: 0o700}, Own: true}, // the mode that containerd 2.1.9 sets at each start
		config{c},
		cri.CrictlConfig(runtime.Socket),
		op.Text("/etc/systemd/system/"+Unit, func(context.Context, *steps.Host) ([]byte, error) {
			return files.ReadFile("templates/" + Unit)
		}),
		op.Unit{Name: Unit},
	}
	return append(rs, certs(c, m)...) // read at every pull: no restart is needed
}

// Service configures and starts containerd. It pulls every image through the site's registry,
// if the site has one.
func Service(c *manifest.Cluster, m *cri.Mirrors) steps.Step {
	return op.Ensure("containerd.start", service(c, m))
}

// StopService stops the remaining containers and containerd, and removes its configuration,
// unit and data. A deletion that preserves data keeps the images.
func StopService(c *manifest.Cluster, m *cri.Mirrors, keep bool) steps.Step {
	rs := service(c, m)
	if keep {
		rs = op.Without(rs, part.RuntimeOf(c).DataDir)
	}
	return op.Remove("containerd.stop", rs, op.Destroys)
}

// pause is the image that every pod's sandbox runs.
var pause = manifest.Need{Kind: manifest.Image, Name: "pause"}

// config is containerd's configuration file. It contains the sandbox image, which is pinned
// in the bundle's lock file.
type config struct{ cluster *manifest.Cluster }

func (c config) file() op.File {
	return op.File{Path: part.RuntimeOf(c.cluster).Config, Attr: runner.Attr{Mode: 0o600, Owner: "root", Group: "root"}, Body: func(_ context.Context, h *steps.Host) ([]byte, error) {
		im, err := h.Image(pause)
		if err != nil {
			return nil, err
		}
		version, err := h.Lookup(containerdNeed)
		if err != nil {
			return nil, err
		}
		name := "config-v3.toml.tmpl"
		if strings.HasPrefix(strings.TrimPrefix(version.Version, "v"), "1.") {
			name = "config-v2.toml.tmpl"
		}
		var b bytes.Buffer
		err = templates.ExecuteTemplate(&b, name, struct {
			DataDir, Sandbox string
			SystemdCgroup    bool
		}{part.RuntimeOf(c.cluster).DataDir, im.Reference, c.cluster.Spec.Kubernetes.Kubelet.CgroupDriver == "systemd"})
		return b.Bytes(), err
	}}
}

var containerdNeed = manifest.Need{Kind: manifest.Binary, Name: "containerd/containerd"}

func (c config) String() string { return c.file().String() }

// Needs returns the sandbox image and containerd, for its version.
func (config) Needs() []manifest.Need { return []manifest.Need{pause, containerdNeed} }

// Want compares the file.
func (c config) Want(ctx context.Context, h *steps.Host, earlier bool) (*op.Change, error) {
	return c.file().Want(ctx, h, earlier)
}

// Gone removes the file.
func (c config) Gone(ctx context.Context, h *steps.Host) (*op.Change, error) {
	return c.file().Gone(ctx, h)
}
