package containerd_test

import (
	"encoding/base64"
	"flag"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/registry"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
	"github.com/mensylisir/kubexm/steps/runtime/containerd"
	"github.com/mensylisir/kubexm/steps/runtime/cri"
	"github.com/mensylisir/kubexm/steps/steptest"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

// install brings containerd's service to a host of a cluster.
func install(t *testing.T, c *manifest.Cluster, version string, m *cri.Mirrors) *conntest.Sim {
	t.Helper()
	kase := steptest.Case{Cluster: c, Artifacts: steptest.Artifacts{Versions: map[string]string{"containerd/containerd": version}}}
	s := kase.Sim(t)
	step := containerd.Service(c, m)
	if err := step.Run(t.Context(), kase.NewHost(t, s, step)); err != nil {
		t.Fatal(err)
	}
	return s
}

func golden(t *testing.T, s *conntest.Sim, file, name string) map[string]any {
	t.Helper()
	text := s.Read(file)
	if text == "" {
		t.Fatalf("there is no %s", file)
	}
	steptest.Golden(t, *update, name, text)
	var v map[string]any
	if strings.HasSuffix(name, ".toml") {
		if err := toml.Unmarshal([]byte(text), &v); err != nil {
			t.Fatalf("%s: %v\n%s", file, err, text)
		}
	}
	return v
}

func TestConfigOfEachVersion(t *testing.T) {
	for name, c := range map[string]struct{ version, spec string }{
		"config-v2.toml":          {"v1.7.27", ""},
		"config-v3.toml":          {"v2.1.4", ""},
		"config-v3-cgroupfs.toml": {"2.0.0", "  runtime: {type: containerd, containerd: {dataDir: /data/containerd}}\n  kubernetes: {version: v1.34.10, kubelet: {cgroupDriver: cgroupfs}}\n"},
	} {
		t.Run(name, func(t *testing.T) {
			config := steptest.Small
			if c.spec != "" {
				config = strings.Replace(config, "  kubernetes: {version: v1.34.10}\n", "", 1) + c.spec
			}
			v := golden(t, install(t, steptest.Cluster(t, config), c.version, nil), "/etc/containerd/config.toml", name)
			if _, ok := v["version"]; !ok {
				t.Error("no version")
			}
		})
	}
}

func TestUnitAndCrictl(t *testing.T) {
	s := install(t, steptest.Cluster(t, steptest.Small), "v2.1.4", nil)
	golden(t, s, "/etc/systemd/system/containerd.service", "containerd.service")
	golden(t, s, "/etc/crictl.yaml", "crictl.yaml")
	steptest.YAML(t, []byte(s.Read("/etc/crictl.yaml")))
}

func TestHostsOfEachKind(t *testing.T) {
	c := steptest.Cluster(t, steptest.Small)
	full := mirrors()
	full.Host, full.Namespace, full.Upstreams = "registry.kubexm.local:5000", "site", []string{"registry.k8s.io", "localhost:5001"}
	plain := mirrors()
	plain.PlainHTTP = true
	plain.Login = func(*steps.Host) (string, string, error) { return "", "", nil }
	open := mirrors()
	open.Insecure, open.Certs = true, func(*steps.Host) (registry.Certs, error) { return registry.Certs{}, nil }
	for name, k := range map[string]struct {
		m    *cri.Mirrors
		host string
	}{
		"hosts-insecure.toml":           {open, "docker.io"},
		"hosts-upstream.toml":           {mirrors(), "docker.io"},
		"hosts-own.toml":                {mirrors(), "registry.kubexm.local"},
		"hosts-default.toml":            {mirrors(), "_default"},
		"hosts-namespace.toml":          {full, "registry.k8s.io"},
		"hosts-upstream-with-port.toml": {full, "localhost:5001"}, // containerd looks under the name as it is
		"hosts-own-with-port.toml":      {full, "registry.kubexm.local:5000"},
		"hosts-plain.toml":              {plain, "docker.io"},
	} {
		t.Run(name, func(t *testing.T) {
			s := install(t, c, "v2.1.4", k.m)
			file := path.Join("/etc/containerd/certs.d", k.host, "hosts.toml")
			v := golden(t, s, file, name)
			// A miss must never ask anybody else.
			server, _ := v["server"].(string)
			hosts, _ := v["host"].(map[string]any)
			if len(hosts) != 1 || hosts[server] == nil {
				t.Errorf("server is %q, and the hosts are %v", server, hosts)
			}
			if f, _ := s.File(file); f.Mode != 0o600 {
				t.Errorf("a file with a password has mode %v", f.Mode)
			}
		})
	}
}

// TestRegistriesOfTheConfig: mirrors come after the site's registry, for docker.io
// alone; a registry whose certificate is not checked is spoken to itself.
func TestRegistriesOfTheConfig(t *testing.T) {
	c := steptest.Cluster(t, steptest.Small+`  runtime:
    containerd:
      registryMirrors: [mirror.site.local, 'http://mirror.site.local:8080', 'https://hub.site.local/v2/proxy/']
      insecureRegistries: ['old.site.local:5000', mirror.site.local, 'http://plain.site.local', docker.io, registry.kubexm.local]
`)
	site := install(t, c, "v2.1.4", mirrors())
	alone := install(t, c, "v2.1.4", nil)
	for name, k := range map[string]struct {
		sim  *conntest.Sim
		host string
	}{
		"registries-docker.io.toml":       {site, "docker.io"},
		"registries-registry.k8s.io.toml": {site, "registry.k8s.io"},
		"registries-old.toml":             {site, "old.site.local:5000"},
		"registries-mirror.toml":          {site, "mirror.site.local"},
		"registries-plain.toml":           {site, "plain.site.local"},
		"registries-own.toml":             {site, "registry.kubexm.local"},
		"registries-alone-docker.io.toml": {alone, "docker.io"},
	} {
		golden(t, k.sim, path.Join("/etc/containerd/certs.d", k.host, "hosts.toml"), name)
	}
}

// TestLoginsOfTheConfig: who logs in where, with which certificates; a mirror is
// spoken to as its own registry is. The site's registry answers for its upstreams.
func TestLoginsOfTheConfig(t *testing.T) {
	certs := t.TempDir()
	for name, text := range map[string]string{"ca.crt": "a CA\n", "me.cert": "my certificate\n", "me.key": "my key\n"} {
		if err := os.WriteFile(filepath.Join(certs, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := steptest.Cluster(t, steptest.Small+`  runtime: {containerd: {registryMirrors: [hub.site.local], insecureRegistries: [old.site.local]}}
  registry:
    auths:
      hub.site.local: {username: anna, password: hers, certsPath: "`+certs+`"}
      old.site.local: {username: otto, password: his}
      plain.site.local:5000: {plainHTTP: true}
      open.site.local: {skipTLSVerify: true}
      registry.k8s.io: {username: nobody, password: asks}
`)
	s := install(t, c, "v2.1.4", mirrors())
	for host, name := range map[string]string{"docker.io": "logins-mirror.toml", "hub.site.local": "logins-hub.toml", "old.site.local": "logins-old.toml",
		"plain.site.local:5000": "logins-plain.toml", "open.site.local": "logins-open.toml"} {
		file := path.Join("/etc/containerd/certs.d", host, "hosts.toml")
		golden(t, s, file, name)
		if f, _ := s.File(file); f.Mode != 0o600 {
			t.Errorf("a file with a password has mode %v", f.Mode)
		}
	}
	if text := s.Read("/etc/containerd/certs.d/registry.k8s.io/hosts.toml"); strings.Contains(text, base64.StdEncoding.EncodeToString([]byte("nobody:asks"))) || !strings.Contains(text, "registry.kubexm.local") {
		t.Errorf("an upstream that the site's registry answers for:\n%s", text)
	}
	for file, want := range map[string]string{"kubexm-of-hub.site.local.crt": "a CA\n", "kubexm-of-hub.site.local.cert": "my certificate\n", "kubexm-of-hub.site.local.key": "my key\n", "kubexm-registry.cert": ""} {
		if got := s.Read("/etc/containerd/certs.d/" + file); got != want {
			t.Errorf("%s: %q", file, got)
		}
	}
	if f, _ := s.File("/etc/containerd/certs.d/kubexm-of-hub.site.local.key"); f.Mode != 0o600 {
		t.Errorf("a key has mode %v", f.Mode)
	}
	steptest.Ensure(t, steptest.Case{Cluster: c, Every: 23}, containerd.Service(c, mirrors()), containerd.StopService(c, mirrors(), false))
}

func TestUpstreamsOfImages(t *testing.T) {
	got := cri.Upstreams([]string{"nginx:1.29", "registry.k8s.io/pause:3.10", "docker.io/library/busybox:1", "quay.io/x/y@sha256:" + strings.Repeat("0", 64), "not an image"})
	if want := "docker.io quay.io registry.k8s.io"; strings.Join(got, " ") != want {
		t.Errorf("%v", got)
	}
}
