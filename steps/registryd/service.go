package registryd

import (
	"bytes"
	"embed"
	"net"
	"path"
	"strconv"
	"strings"
	"text/template"

	"go.yaml.in/yaml/v3"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
)

//go:embed templates
var files embed.FS

var unitFile = template.Must(template.New("registry.service").Option("missingkey=error").ParseFS(files, "templates/registry.service"))

const (
	configDir = "/etc/kubexm/registry"
	unit      = "kubexm-registry.service"      // read only, for the nodes
	pushUnit  = "kubexm-registry-push.service" // on the loopback address
	account   = "kubexm-registry"              // the user that both run as
)

// service is one process of the registry. Two share the store: the one that nodes
// reach refuses every write, whoever logs in there, and cannot write to the store;
// the one that takes pushes is reached through the host's SSH connection alone, and
// knows no user of the nodes.
type service struct {
	unit, config, passwords string
	description             string
	after                   string // units that start before
	address                 string // that it listens on
	readOnly                bool
	logins                  func(Access, *manifest.Cluster, *steps.Host) ([]login, error)
}

// services are both, in the order that they start in: the first one gives the
// store to the user of both.
func services(c *manifest.Cluster) []service {
	_, port := HostPort(c)
	return []service{
		{
			unit: pushUnit, config: "push.yml", passwords: "push.htpasswd", description: "container image registry of the site, for pushing",
			address: pushAddress(c), logins: Access.pushLogins,
		},
		{
			unit: unit, config: "config.yml", passwords: "htpasswd", description: "container image registry of the site, for pulling", after: pushUnit,
			address: ":" + port, readOnly: true, logins: Access.pullLogins,
		},
	}
}

// pushAddress is where pushes arrive, on the registry's host.
func pushAddress(c *manifest.Cluster) string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(c.Spec.Registry.PushPort()))
}

// pullAddress is where the nodes' registry answers on its own host.
func pullAddress(c *manifest.Cluster) string {
	_, port := HostPort(c)
	return net.JoinHostPort("127.0.0.1", port)
}

// configuration is distribution's own. It deletes no manifest and no layer; a tag can
// be removed by who pushes, whatever is written here. Indexes of which the bundle carries only some platforms are allowed: they are served as
// upstream published them.
func (s service) configuration(c *manifest.Cluster) ([]byte, error) {
	type m = map[string]any
	storage := m{
		"filesystem": m{"rootdirectory": c.Spec.Registry.RegistryDataDir},
		"delete":     m{"enabled": false},
	}
	if s.readOnly {
		storage["maintenance"] = m{"readonly": m{"enabled": true}, "uploadpurging": m{"enabled": false}}
	}
	return yaml.Marshal(m{
		"version": 0.1,
		"log":     m{"level": "info"},
		"storage": storage,
		"http": m{
			"addr": s.address,
			"tls": m{
				"certificate": path.Join(configDir, "tls.crt"), "key": path.Join(configDir, "tls.key"), "minimumtls": "tls1.2",
			},
		},
		"auth":       m{"htpasswd": m{"realm": "kubexm", "path": path.Join(configDir, s.passwords)}},
		"validation": m{"manifests": m{"indexes": m{"platforms": "none"}}},
	})
}

// file is the unit's. The service that takes pushes alone may write to the store,
// and before it starts the store is given to the user of both: one that an earlier
// kubexm filled is root's, one that a deletion left may be of another number.
func (s service) file(c *manifest.Cluster, h *steps.Host) ([]byte, error) {
	v := struct{ Description, After, Store, Config, Account string }{
		Description: s.description, After: s.after, Config: path.Join(configDir, s.config), Account: account,
	}
	if !s.readOnly {
		v.Store = unitWord(c.Spec.Registry.RegistryDataDir)
	}
	if asRoot(c, h) {
		v.Account = ""
	}
	var out bytes.Buffer
	err := unitFile.Execute(&out, v)
	return out.Bytes(), err
}

// asRoot tells whether a host's systemd cannot give a user of its own a port below
// 1024: AmbientCapabilities is known since version 229, and version 7 of Red Hat's
// family has 219.
func asRoot(c *manifest.Cluster, h *steps.Host) bool {
	_, port := HostPort(c)
	n, err := strconv.Atoi(port)
	os := h.Facts.OS
	old := (os.ID == "centos" || os.ID == "rhel") && (os.VersionID == "7" || strings.HasPrefix(os.VersionID, "7."))
	return err == nil && n < 1024 && old
}

// unitWord gives a path as one word of a unit's file.
func unitWord(p string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "%", "%%").Replace(p) + `"`
}
