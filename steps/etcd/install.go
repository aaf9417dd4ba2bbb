package etcd

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"io/fs"
	"regexp"
	"strings"
	"text/template"
	"time"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/op"
	"github.com/mensylisir/kubexm/steps/pki"
	"github.com/mensylisir/kubexm/steps/runner"
)

//go:embed templates
var files embed.FS

var service = template.Must(template.New("etcd.service").Option("missingkey=error").ParseFS(files, "templates/etcd.service"))

const unit = "etcd.service"

func resources(c *manifest.Cluster) []op.Resource {
	var rs []op.Resource
	for _, name := range []string{"etcd", "etcdctl", "etcdutl"} {
		rs = append(rs, op.Blob{Path: "/usr/local/bin/" + name, Need: manifest.Need{Kind: manifest.Binary, Name: "etcd/" + name}})
	}
	own := runner.Attr{Mode: 0o700}
	rs = append(rs,
		op.Dir{Path: configDir}, op.Dir{Path: keysDir, Attr: own, Own: true},
		dataDir(c),
		op.File{Path: caKeyFile, Attr: runner.Attr{Mode: 0o600}, Secret: true, Body: func(ctx context.Context, h *steps.Host) ([]byte, error) {
			_, key, err := memberCA(ctx, h)
			return key, err
		}},
		op.Text(caFile, func(ctx context.Context, h *steps.Host) ([]byte, error) {
			cert, _, err := memberCA(ctx, h)
			return cert, err
		}),
	)
	rs = append(rs, pair(serverCert, serverKey, func(h *steps.Host) (string, pki.Request) { return server(c, h.Host) })...)
	rs = append(rs, pair(peerCert, peerKey, func(h *steps.Host) (string, pki.Request) { return peer(c, h.Host) })...)
	rs = append(rs, pair(healthCert, healthKey, func(*steps.Host) (string, pki.Request) { return healthClient() })...)
	return append(rs,
		unitFile(c),
		member{Unit: op.Unit{Name: unit}, cluster: c}, joining{c},
	)
}

const unitPath = "/etc/systemd/system/" + unit

// unitFile is the file of the unit. A member with data ignores the flag initial-cluster, so
// the unit keeps its value: another member in the config restarts nothing.
func unitFile(c *manifest.Cluster) op.File {
	return op.Text(unitPath, func(ctx context.Context, h *steps.Host) ([]byte, error) {
		initial, err := initialOf(ctx, c, h)
		if err != nil {
			return nil, err
		}
		return serviceUnit(c, h.Host, initial)
	})
}

var initialFlag = regexp.MustCompile(`--initial-cluster=(\S+)`)

// initialOf returns the value of initial-cluster for the unit of the member on h.
func initialOf(ctx context.Context, c *manifest.Cluster, h *steps.Host) (string, error) {
	all := initialCluster(c)
	text, err := h.ReadFile(ctx, unitPath)
	if errors.Is(err, fs.ErrNotExist) {
		return all, nil
	}
	if err != nil {
		return "", err
	}
	exists := initialFlag.FindSubmatch(text)
	if exists == nil || string(exists[1]) == all {
		return all, nil
	}
	if has, err := hasData(ctx, c, h); err != nil || !has {
		return all, err
	}
	return string(exists[1]), nil
}

func dataDir(c *manifest.Cluster) op.Dir {
	return op.Dir{Path: c.Spec.Etcd.DataDir, Attr: runner.Attr{Mode: 0o700}, Own: true}
}

// pair returns a certificate and its key as files of a host.
func pair(cert, key string, of func(*steps.Host) (name string, r pki.Request)) []op.Resource {
	read := func(ctx context.Context, h *steps.Host) (c, k []byte, err error) {
		name, r := of(h)
		return keysOf(h).leaf(name, r, func() (c, k []byte, err error) {
			if c, err = h.ReadFile(ctx, cert); err == nil {
				k, err = h.ReadFile(ctx, key)
			}
			return c, k, err
		})
	}
	return []op.Resource{
		op.Text(cert, func(ctx context.Context, h *steps.Host) ([]byte, error) {
			c, _, err := read(ctx, h)
			return c, err
		}),
		op.File{Path: key, Attr: runner.Attr{Mode: 0o600}, Secret: true, Body: func(ctx context.Context, h *steps.Host) ([]byte, error) {
			_, k, err := read(ctx, h)
			return k, err
		}},
	}
}

// Install makes a host an etcd member: binaries, certificates, data folder and unit. It does
// not wait for the other members, because all are started before a quorum exists. A host
// without data joins members that have some: as a learner, which votes once it has all data.
func Install(c *manifest.Cluster) steps.Step {
	joins := func(m *steps.Meta) { m.Reads, m.Timeout = append(m.Reads, Data), installTimeout }
	return op.Ensure("etcd.install", resources(c), op.Upload, joins)
}

// installTimeout suffices for a learner that catches up, on three hosts one after another.
const installTimeout = 3*catchUpTimeout + 10*time.Minute

// Uninstall removes the etcd member from a host: unit, binaries, certificates and data. A
// deletion that preserves data keeps the data folder.
func Uninstall(c *manifest.Cluster, keep bool) steps.Step {
	rs := resources(c)
	if keep {
		rs = op.Without(rs, c.Spec.Etcd.DataDir)
	}
	return op.Remove("etcd.uninstall", rs, op.Destroys)
}

func serviceUnit(c *manifest.Cluster, h manifest.Host, initial string) ([]byte, error) {
	var words []string
	for _, a := range memberFlags(c, h, initial) {
		words = append(words, quote("--"+a.Name+"="+a.Value))
	}
	var b bytes.Buffer
	err := service.Execute(&b, words)
	return b.Bytes(), err
}

var plain = regexp.MustCompile(`^[A-Za-z0-9_@+=:,./\[\]-]*$`)

// quote returns a word of a unit's command line in systemd's syntax (systemd.service(5)):
// quoted if necessary, with % and $ escaped.
func quote(word string) string {
	if plain.MatchString(word) {
		return word
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "%", "%%", "$", "$$", "\n", `\n`).Replace(word) + `"`
}
