package manifest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/mensylisir/kubexm/manifest/document"
)

// canary is a secret that must never be seen.
const canary = "CanaryX7"

// withSecrets holds every secret that a config can, each with the canary.
const withSecrets = header + `
  kubernetes: {version: v1.34.10}
  ssh:
    password: CanaryX7
    privateKeyPath: ~/.ssh/id
    passphrase: CanaryX7-phrase
    sudoPassword: "CanaryX7: #1"
    jumpHost: {address: jump.example, privateKeyPath: k, password: CanaryX7, passphrase: CanaryX7}
  hosts:
    - name: node-1.site
      address: 192.0.2.1
      privateKeyPath: k
      password: CanaryX7
      passphrase: CanaryX7
      sudoPassword: CanaryX7
      jumpHost:
        address: 192.0.2.9
        privateKeyPath: k
        password: CanaryX7
        passphrase: CanaryX7
  roleGroups: {etcd: [node-1.site], master: [node-1.site], worker: [node-1.site], registry: [node-1.site]}
  registry:
    type: harbor
    auths: {"registry.example:5000": {username: u, password: CanaryX7, pullUsername: v, pullPassword: CanaryX7}}
    harborConfig: {adminPassword: CanaryX7, databasePassword: CanaryX7}
`

// TestNothingInAMapping: a label without a value is a label, and comes back.
func TestNothingInAMapping(t *testing.T) {
	c := mustDecode(t, "\n  kubernetes: {version: v1.34.10}\n  hosts: [{name: node1, address: 192.0.2.1, labels: {gpu: , ssd: ''}}]\n  roleGroups: {etcd: [node1], master: [node1], worker: [node1]}\n  registry: {auths: {a.example: }}\n")
	public, err := c.Public()
	if err != nil {
		t.Fatal(err)
	}
	again, problems := Decode(bytes.NewReader(public))
	if err := problems.Err(); err != nil {
		t.Fatalf("%v\n%s", err, public)
	}
	for _, x := range []*Cluster{c, again} {
		if diff := cmp.Diff(map[string]string{"gpu": "", "ssd": ""}, x.Spec.Hosts[0].Labels); diff != "" {
			t.Errorf("labels (-want +got):\n%s", diff)
		}
	}
}

// TestSecretsAreNeverSeen: however a cluster is printed, encoded or logged.
func TestSecretsAreNeverSeen(t *testing.T) {
	c, problems := Decode(strings.NewReader(withSecrets))
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	found := c.Secrets()
	for _, f := range ConfigFields().All() {
		if f.Kind != SecretField {
			continue
		}
		if !slices.ContainsFunc(keysOf(found), func(p string) bool {
			return document.Plain(p) == f.Path || strings.HasPrefix(document.Plain(p), strings.TrimSuffix(f.Path, ".password")) && !found[p].IsZero()
		}) {
			t.Errorf("%s: the test holds no such secret", f.Path)
		}
	}
	for path, s := range found {
		if !strings.Contains(s.text(), canary) {
			t.Errorf("%s: the test's config lost it: %q", path, s.text())
		}
	}
	public, err := c.Public()
	if err != nil {
		t.Fatal(err)
	}
	asJSON, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	asYAML, err := yaml.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	var logged bytes.Buffer
	for _, h := range []slog.Handler{slog.NewTextHandler(&logged, nil), slog.NewJSONHandler(&logged, nil)} {
		slog.New(h).Info("read", "cluster", c, "value", *c, "secret", c.Spec.SSH.Password, "host", c.Spec.Hosts[0])
	}
	outputs := map[string]string{"Public": string(public), "JSON": string(asJSON), "YAML": string(asYAML), "slog": logged.String(), "problems": problems.Error()}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		for _, v := range []any{c, *c, c.Spec, c.Spec.Hosts, c.Spec.Hosts[0].JumpHost, c.Spec.SSH.Password, &c.Spec.SSH.Password, c.Spec.Registry.Auths} {
			outputs[verb] += fmt.Sprintf(verb, v)
		}
	}
	hex := fmt.Sprintf("%x", canary)
	for how, text := range outputs {
		if strings.Contains(text, canary) || strings.Contains(text, hex) {
			t.Errorf("%s shows a secret", how)
		}
	}
	if !strings.Contains(outputs["%+v"], document.Mask) || !strings.Contains(string(asJSON), document.Mask) {
		t.Error("nothing was masked: were the secrets there?")
	}
}

func keysOf(m map[string]Secret) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	return out
}

// TestSecretsStayOutOfProblems: whatever slip of the finger breaks the document.
func TestSecretsStayOutOfProblems(t *testing.T) {
	check := func(text, what string) {
		if s := Check(strings.NewReader(text)).Error(); strings.Contains(s, canary) {
			t.Errorf("%s: a problem shows a secret:\n%s", what, s)
		}
	}
	for _, broken := range []string{"*CanaryX7", "&CanaryX7", "!CanaryX7", "!CanaryX7 x", "!x CanaryX7", "@CanaryX7", "`CanaryX7", "%CanaryX7", "[CanaryX7]", "{CanaryX7}",
		"{CanaryX7: 1}", "'CanaryX7", `"CanaryX7`, `"\CanaryX7"`, "|CanaryX7", "${CanaryX7}", "CanaryX7: x", "- CanaryX7", "? CanaryX7", "CanaryX7 #", "a,CanaryX7", "a, CanaryX7", "a: CanaryX7", `"a" CanaryX7`, `a", "CanaryX7`} {
		for _, at := range []string{"password: CanaryX7\n", "password: CanaryX7}}", "adminPassword: CanaryX7"} {
			name, _, _ := strings.Cut(at, " ")
			check(strings.Replace(withSecrets, at, strings.Replace(at, name+" CanaryX7", name+" "+broken, 1), 1), broken)
			check(strings.Replace(withSecrets, at, strings.Replace(at, name+" CanaryX7", strings.TrimSuffix(name, ":")+"："+broken, 1), 1), "："+broken)
		}
	}
	slips := []string{"{", "}", "[", ":", "'", `"`, "\n", "#", ",", "-", "*", "\t", "："}
	for i := range withSecrets { // one slip at each place
		switch c := slips[i/3%len(slips)]; i % 3 {
		case 0:
			check(withSecrets[:i], fmt.Sprintf("cut at %d", i))
		case 1:
			check(withSecrets[:i]+withSecrets[i+1:], fmt.Sprintf("without byte %d", i))
		case 2:
			check(withSecrets[:i]+c+withSecrets[i:], fmt.Sprintf("with %q at %d", c, i))
		}
	}
}

// TestPublic: written secrets become environment variables, and nothing else changes.
func TestPublic(t *testing.T) {
	c := mustDecode(t, `
  kubernetes: {version: v1.34.10, containerRuntime: containerd, maxPods: 110}
  storage: {openebs: {}}
  ssh: {password: secret1, sudoPassword: "file:/run/sudo"}
  hosts:
    - {name: node-1.site, address: 192.0.2.1, password: "${env:MINE}"}
    - {name: node-1-site, address: 192.0.2.2, password: secret3}
    - {name: node.1.site, address: 192.0.2.3, password: secret4}
  roleGroups: {etcd: [node-1.site], master: [node-1.site], worker: [node-1-site, node.1.site]}
  registry: {privateRegistry: r.example, auths: {"r.example:5000": {username: u, password: secret2}}}
  addons: [{name: a, type: helm, source: oci://r.example/a, values: {x: {y: [1, two, true, null]}}}]
  etcd: {extraArgs: {v: 2}}
  controlPlaneEndpoint: {externalDNS: false}
`)
	public, err := c.Public()
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "testdata/public.yaml", string(public))
	again, problems := Decode(bytes.NewReader(public))
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	sameButSecrets(t, c, again)
	second, err := again.Public()
	if err != nil || !bytes.Equal(public, second) {
		t.Errorf("read back and written again, it differs: %v\n%s", err, cmp.Diff(string(public), string(second)))
	}
	if _, err := new(Cluster).Public(); err == nil {
		t.Error("a cluster that was not decoded has a public form")
	}
}

// sameButSecrets compares clusters: secrets by whether they are there.
func sameButSecrets(t *testing.T, a, b *Cluster) {
	t.Helper()
	secrets := cmp.Comparer(func(x, y Secret) bool { return x.IsZero() == y.IsZero() })
	clusters := cmp.Transformer("fields", func(c Cluster) [3]any { return [3]any{c.APIVersion, c.Metadata, c.Spec} })
	if diff := cmp.Diff(*a, *b, secrets, clusters); diff != "" {
		t.Errorf("read back from Public (-want +got):\n%s", diff)
	}
}

// TestPublicKeepsTheRest: for every config at hand, Public means the same.
func TestPublicKeepsTheRest(t *testing.T) {
	files, err := filepath.Glob("../cmd/kubexm/starters/*.yaml")
	if err != nil || len(files) < 4 {
		t.Fatal(files, err)
	}
	for _, name := range append(files, "testdata/sample-mended.yaml", "../testdata/configs/quickstart.yaml") {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		c, problems := Decode(bytes.NewReader(text))
		if err := problems.Err(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		public, err := c.Public()
		if err != nil {
			t.Fatal(err)
		}
		again, problems := Decode(bytes.NewReader(public))
		if err := problems.Err(); err != nil {
			t.Fatalf("%s: its public form: %v\n%s", name, err, public)
		}
		sameButSecrets(t, c, again)
	}
}

// TestReveal finds what a secret refers to, and names the reference alone when
// it is not there.
func TestReveal(t *testing.T) {
	env := func(name string) (string, bool) { return "from " + name, name == "A" }
	read := func(path string) ([]byte, error) {
		if path != "/run/a" {
			return nil, os.ErrNotExist
		}
		return []byte("of a file\r\n"), nil
	}
	for written, want := range map[string]string{"plain": "plain", "${env:A}": "from A", "file:/run/a": "of a file", "": "", "${env:A": "${env:A"} {
		if got, err := NewSecret(written).Reveal(env, read); err != nil || got != want {
			t.Errorf("%q reveals %q, %v; want %q", written, got, err, want)
		}
	}
	for _, written := range []string{"${env:B}", "file:/run/b"} {
		if _, err := NewSecret(written).Reveal(env, read); err == nil || !strings.Contains(err.Error(), "missing") {
			t.Errorf("%q: %v", written, err)
		}
	}
}
