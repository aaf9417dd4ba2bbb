package manifest

import (
	"slices"
	"strings"
	"testing"
)

// TestCarriedConfig: what a config out of a bundle may read on the workdir host.
func TestCarriedConfig(t *testing.T) {
	const hosts = "  hosts: [{name: m1, address: 192.0.2.1MORE}, {name: m2, address: 192.0.2.2}]\n  roleGroups: {master: [m1], worker: [m2]}\n"
	for name, c := range map[string]struct {
		host, spec string
		policy     bool
		want       []string // paths
	}{
		"nothing of it":                    {},
		"the default key":                  {spec: "  ssh: {privateKeyPath: ~/.ssh/id_ed25519}\n"},
		"another key":                      {spec: "  ssh: {privateKeyPath: ~/.ssh/customer}\n", want: []string{"spec.ssh.privateKeyPath"}},
		"an absolute key":                  {host: ", privateKeyPath: /root/.ssh/id_ed25519", want: []string{"spec.hosts[0].privateKeyPath"}},
		"a relative key":                   {host: ", privateKeyPath: key", want: []string{"spec.hosts[0].privateKeyPath"}},
		"the variable of the public form":  {host: `, password: "${env:KUBEXM_HOSTS_M1_PASSWORD}"`},
		"any other variable":               {host: `, password: "${env:AWS_SECRET_ACCESS_KEY}"`, want: []string{"spec.hosts[0].password"}},
		"the password of the signing key":  {host: `, password: "${env:KUBEXM_KEY_PASSWORD}"`, want: []string{"spec.hosts[0].password"}},
		"a file":                           {host: `, sudoPassword: "file:/root/.ssh/id_ed25519"`, want: []string{"spec.hosts[0].sudoPassword"}},
		"a secret itself":                  {host: `, password: known`, want: []string{"spec.hosts[0].password"}},
		"a secret of every host":           {spec: "  ssh: {password: \"file:/etc/shadow\"}\n", want: []string{"spec.ssh.password"}},
		"accept-new":                       {spec: "  ssh: {hostKeyPolicy: accept-new}\n", want: []string{"spec.ssh.hostKeyPolicy"}},
		"accept-new, and a flag":           {spec: "  ssh: {hostKeyPolicy: accept-new}\n", policy: true},
		"pinned":                           {host: ", hostKeyPolicy: pinned, hostKey: 'SHA256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA'", want: []string{"spec.hosts[0].hostKeyPolicy"}},
		"a jump host":                      {spec: "  ssh: {jumpHost: {address: 192.0.2.9, hostKeyPolicy: accept-new, password: \"file:/a\", passphrase: \"${env:B}\", privateKeyPath: /k}}\n", want: []string{"spec.ssh.jumpHost.hostKeyPolicy", "spec.ssh.jumpHost.passphrase", "spec.ssh.jumpHost.password", "spec.ssh.jumpHost.privateKeyPath"}},
		"keys of a store":                  {spec: "  etcd: {type: external, external: {endpoints: ['https://192.0.2.4:2379'], caFile: etcd/ca.crt, certFile: ../client.crt, keyFile: .ssh/id_rsa}}\n", want: []string{"spec.etcd.external.certFile", "spec.etcd.external.keyFile"}},
		"a store's keys by absolute paths": {spec: "  etcd: {type: external, external: {endpoints: ['https://192.0.2.4:2379'], caFile: /etc/ssl/ca.crt, certFile: ~/a.crt, keyFile: /root/.ssh/id_rsa}}\n", want: []string{"spec.etcd.external.caFile", "spec.etcd.external.certFile", "spec.etcd.external.keyFile"}},
		"a registry":                       {spec: "  registry: {type: external, privateRegistry: reg.site:5000, auths: {'reg.site:5000': {username: u, password: \"${env:KUBEXM_REGISTRY_PASSWORD}\", certsPath: /etc/docker/certs.d}}}\n", want: []string{`spec.registry.auths["reg.site:5000"].certsPath`}},
		"a registry's password":            {spec: "  registry: {type: external, privateRegistry: reg.site, auths: {reg.site: {username: u, password: \"${env:HOME}\"}}}\n", want: []string{`spec.registry.auths["reg.site"].password`}},
	} {
		t.Run(name, func(t *testing.T) {
			text := "apiVersion: kubexm.mensylisir.io/v1alpha1\nkind: Cluster\nmetadata: {name: demo}\nspec:\n  kubernetes: {version: v1.32.2}\n" + strings.Replace(hosts, "MORE", c.host, 1) + c.spec
			cluster, problems := Decode(strings.NewReader(text))
			if err := problems.Err(); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, p := range cluster.CheckBundled(c.policy) {
				got = append(got, p.Path)
				if p.Severity != Error || p.Message == "" || !strings.Contains(p.Advice, "-f") || strings.Contains(p.Message, "known") {
					t.Errorf("%+v", p)
				}
			}
			slices.Sort(got)
			if !slices.Equal(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// TestPublicConfigMayBeCarried: what a build puts into a bundle of any secret is
// accepted out of it.
func TestPublicConfigMayBeCarried(t *testing.T) {
	c, problems := Decode(strings.NewReader(`apiVersion: kubexm.mensylisir.io/v1alpha1
kind: Cluster
metadata: {name: demo}
spec:
  kubernetes: {version: v1.32.2}
  ssh: {password: one, sudoPassword: "file:/two", jumpHost: {address: 192.0.2.9, password: three}}
  hosts: [{name: m1, address: 192.0.2.1, password: four}, {name: m2, address: 192.0.2.2}]
  roleGroups: {master: [m1], worker: [m2]}
  registry: {type: external, privateRegistry: reg.site, auths: {reg.site: {username: u, password: five}}}
`))
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	text, err := c.Public()
	if err != nil {
		t.Fatal(err)
	}
	public, problems := Decode(strings.NewReader(string(text)))
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	if found := public.CheckBundled(false); len(found) > 0 {
		t.Error(found)
	}
	if found := c.CheckBundled(false); len(found) != 5 {
		t.Errorf("of the config itself: %v", found)
	}
}
