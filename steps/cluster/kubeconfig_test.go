package cluster

import (
	"encoding/base64"
	"encoding/pem"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/pki"
)

// pemOf gives what a kubeconfig holds of bytes: base64 of PEM.
func pemOf(kind string, der []byte) string {
	return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

// newCA gives a CA's certificate in PEM.
func newCA(t *testing.T) []byte {
	t.Helper()
	ca, err := pki.NewAuthority("kubernetes", time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC))
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca.Certificate.Raw})
}

// adminConf is a kubeconfig as kubeadm writes it.
func adminConf(ca []byte) string {
	return `apiVersion: v1
kind: Config
preferences: {}
clusters:
- cluster:
    certificate-authority-data: ` + base64.StdEncoding.EncodeToString(ca) + `
    server: https://lb.kubexm.local:6443
  name: kubernetes
contexts:
- context:
    cluster: kubernetes
    user: kubernetes-admin
  name: kubernetes-admin@kubernetes
current-context: kubernetes-admin@kubernetes
users:
- name: kubernetes-admin
  user:
    client-certificate-data: ` + pemOf("CERTIFICATE", []byte("certificate")) + `
    client-key-data: ` + pemOf("EC PRIVATE KEY", []byte("key")) + `
`
}

// TestKubeconfigServer checks the server of the kubeconfig that operators use.
func TestKubeconfigServer(t *testing.T) {
	ca := newCA(t)
	for address, want := range map[string][2]string{
		"10.0.0.1":    {"https://10.0.0.1:6443", "lb.kubexm.local"},
		"2001:db8::1": {"https://[2001:db8::1]:6443", "lb.kubexm.local"},
		"":            {"https://lb.kubexm.local:6443", ""},
	} {
		text, err := operatorConf([]byte(adminConf(ca)), ca, address)
		if err != nil {
			t.Fatal(err)
		}
		var doc struct {
			Clusters []struct{ Cluster map[string]string }
			Users    []struct{ User map[string]string }
			Current  string `yaml:"current-context"`
		}
		if err := yaml.Unmarshal(text, &doc); err != nil {
			t.Fatal(err)
		}
		c, u := doc.Clusters[0].Cluster, doc.Users[0].User
		if c["server"] != want[0] || c["tls-server-name"] != want[1] || c["certificate-authority-data"] != base64.StdEncoding.EncodeToString(ca) {
			t.Errorf("%s: %v", address, c)
		}
		if u["client-key-data"] == "" || u["client-certificate-data"] == "" || doc.Current == "" {
			t.Errorf("%s: %s", address, text)
		}
		if again, err := operatorConf(text, ca, address); address == "" && (err != nil || !slices.Equal(again, text)) {
			t.Errorf("its own output: %s, %v", again, err)
		}
	}
}

// TestKubeconfigAllowList: a host's kubeconfig holds what kubeadm writes, or is refused with the field's name.
func TestKubeconfigAllowList(t *testing.T) {
	ca, other := newCA(t), newCA(t)
	good := adminConf(ca)
	replace := func(old, new string) string {
		if !strings.Contains(good, old) {
			t.Fatalf("no %q in it", old)
		}
		return strings.Replace(good, old, new, 1)
	}
	key := "client-key-data: " + pemOf("EC PRIVATE KEY", []byte("key"))
	for name, c := range map[string]struct{ text, field string }{
		"exec":                     {good + "    exec: {apiVersion: client.authentication.k8s.io/v1, command: /bin/sh, args: [-c, id]}\n", "users[0].user.exec"},
		"auth-provider":            {good + "    auth-provider: {name: gcp, config: {cmd-path: /bin/sh}}\n", "users[0].user.auth-provider"},
		"a token's file":           {good + "    tokenFile: /root/.ssh/id_rsa\n", "users[0].user.tokenFile"},
		"a key's file":             {replace(key, "client-key: /root/.ssh/id_rsa"), "users[0].user.client-key"},
		"impersonation":            {good + "    as: other\n", "users[0].user.as"},
		"a key of a merge":         {strings.Replace(good, "users:", "x: &x {exec: {command: sh}}\nusers:", 1) + "    <<: *x\n", "x"},
		"a proxy":                  {replace("    server:", "    proxy-url: http://192.0.2.66:3128\n    server:"), "clusters[0].cluster.proxy-url"},
		"no verification":          {replace("    server:", "    insecure-skip-tls-verify: true\n    server:"), "clusters[0].cluster.insecure-skip-tls-verify"},
		"a CA's file":              {replace("    server:", "    certificate-authority: /etc/ssl/ca.crt\n    server:"), "clusters[0].cluster.certificate-authority"},
		"a second cluster":         {replace("clusters:\n", "clusters:\n- {name: other, cluster: {server: 'https://192.0.2.66:6443'}}\n"), "clusters"},
		"a second user":            {replace("users:\n", "users:\n- {name: other, user: {exec: {command: sh}}}\n"), "users"},
		"a second context":         {replace("contexts:\n", "contexts:\n- {name: other, context: {cluster: kubernetes, user: other}}\n"), "contexts"},
		"a namespace":              {replace("    user: kubernetes-admin\n", "    user: kubernetes-admin\n    namespace: x\n"), "contexts[0].context.namespace"},
		"a context of others":      {replace("    user: kubernetes-admin\n", "    user: other\n"), "contexts[0].context.user"},
		"another current context":  {replace("current-context: kubernetes-admin@kubernetes", "current-context: other"), "current-context"},
		"extensions":               {good + "extensions: [{name: x, extension: {}}]\n", "extensions"},
		"preferences":              {replace("preferences: {}", "preferences: {colors: true}"), "preferences"},
		"plain http":               {replace("https://lb", "http://lb"), "clusters[0].cluster.server"},
		"a path in the address":    {replace(":6443", ":6443/evil"), "clusters[0].cluster.server"},
		"a password in the server": {replace("https://", "https://a:b@"), "clusters[0].cluster.server"},
		"no port":                  {replace(":6443", ""), "clusters[0].cluster.server"},
		"no key":                   {replace(key, ""), "users[0].user.client-key-data"},
		"a key that is none":       {replace(key, "client-key-data: a2V5"), "users[0].user.client-key-data"},
		"a number":                 {replace(key, "client-key-data: 7"), "users[0].user.client-key-data"},
		"no CA":                    {replace("certificate-authority-data: "+base64.StdEncoding.EncodeToString(ca), ""), "clusters[0].cluster.certificate-authority-data"},
		"another CA":               {adminConf(other), "clusters[0].cluster.certificate-authority-data"},
		"one CA more":              {adminConf(slices.Concat(ca, other)), "clusters[0].cluster.certificate-authority-data"},
		"control characters":       {replace("name: kubernetes-admin\n", "name: \"kubernetes\\u001badmin\"\n"), "users[0].name"},
		"nothing":                  {"", "admin.conf"},
		"no cluster":               {"clusters: []", "clusters"},
		"a list":                   {"- a", "admin.conf"},
		"half a document":          {"{", "admin.conf"},
		"clusters of numbers":      {"clusters: [1]", "clusters[0]"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, address := range []string{"", "10.0.0.1"} { // with external DNS and without
				text, err := operatorConf([]byte(c.text), ca, address)
				if err == nil {
					t.Fatalf("taken:\n%s", text)
				}
				var refused *KubeconfigError
				if !strings.Contains(err.Error(), "admin.conf") || !strings.Contains(err.Error(), c.field) || !errors.As(err, &refused) {
					t.Errorf("%v, want the field %s", err, c.field)
				}
				if len(steps.Advice(err)) == 0 {
					t.Errorf("%v: no advice", err)
				}
			}
		})
	}
}
