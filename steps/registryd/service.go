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

// service is one of the registry's two processes, which share the storage. The one that
// nodes reach rejects every write and cannot write to the storage. The one for pushes is
// reached only through the host's SSH connection, and rejects the nodes' user.
type service struct {
	unit, config, passwords string
	description             string
	after                   string // units that are started before it
	address                 string // listen address
	readOnly                bool
	logins                  func(Access, *manifest.Cluster, *steps.Host) ([]login, error)
}

// services returns both services in their start order: the first one sets the owner of the
// storage.
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

// pushAddress returns the listen address for pushes, on the registry's host.
func pushAddress(c *manifest.Cluster) string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(c.Spec.Registry.PushPort()))
}

// pullAddress returns the address for pulls on the registry's own host.
func pullAddress(c *manifest.Cluster) string {
	_, port := HostPort(c)
	return net.JoinHostPort("127.0.0.1", port)
}

// configuration returns the registry's configuration file. Manifests and layers cannot be
// deleted; a user that pushes can still remove a tag, which no setting prevents. An index is
// accepted if the bundle has only some of its platforms: it is served as upstream published
// it.
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

// file returns the unit file. Only the service for pushes may write to the storage. Before it
// starts, it changes the owner of the storage to the user of both services: root owns one
// that an older kubexm filled, and one that a deletion preserved may belong to another uid.
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

// asRoot reports whether the service must run as root, because the host's systemd cannot let
// another user bind a port below 1024: AmbientCapabilities exists since version 229, and
// version 7 of Red Hat's family has 219.
func asRoot(c *manifest.Cluster, h *steps.Host) bool {
	_, port := HostPort(c)
	n, err := strconv.Atoi(port)
	os := h.Facts.OS
	old := (os.ID == "centos" || os.ID == "rhel") && (os.VersionID == "7" || strings.HasPrefix(os.VersionID, "7."))
	return err == nil && n < 1024 && old
}

// unitWord quotes a path as one word of a unit file.
func unitWord(p string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "%", "%%").Replace(p) + `"`
}

// Certificates are the files with certificates on the registry's host.
func Certificates() []string { return []string{path.Join(configDir, "tls.crt")} }
