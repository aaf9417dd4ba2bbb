package kubeadm_test

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
	"github.com/mensylisir/kubexm/steps/kubeadm"
	"github.com/mensylisir/kubexm/steps/steptest"
)

// TestFlagsOfTheConfigOverride: what a user writes stands once, and in place of ours.
func TestFlagsOfTheConfigOverride(t *testing.T) {
	for flag, of := range map[string]string{
		"profiling": "apiServer", "encryption-provider-config": "apiServer", "tls-cipher-suites": "scheduler", "bind-address": "controllerManager",
		"anonymous-auth": "apiServer", "oidc-issuer-url": "apiServer",
	} {
		c := steptest.Cluster(t, spec("  kubernetes: {version: v1.34.10, "+of+": {extraArgs: {"+flag+": theirs}}}\n"))
		text, err := kubeadm.InitConfig(c, at(t, c, "m1", nil))
		if err != nil {
			t.Fatal(err)
		}
		part, _ := steptest.YAML(t, text)[1][of].(map[string]any)
		list, _ := part["extraArgs"].([]any)
		var values, names []string
		for _, a := range list {
			m, _ := a.(map[string]any)
			name, _ := m["name"].(string)
			value, _ := m["value"].(string)
			if names = append(names, name); name == flag {
				values = append(values, value)
			}
		}
		if !slices.Equal(values, []string{"theirs"}) {
			t.Errorf("%s is %q", flag, values)
		}
		about := flag == "anonymous-auth" || flag == "oidc-issuer-url"
		if file := slices.Contains(names, "authentication-config"); of == "apiServer" && file == about {
			t.Errorf("beside %s there is a file about who comes in: %t", flag, file)
		}
	}
}

// TestSecretsHaveAKey: it is there before the API server, the same here, no other
// may read it, and a second creation takes it again.
func TestSecretsHaveAKey(t *testing.T) { synctest.Test(t, secretsHaveAKey) }

func secretsHaveAKey(t *testing.T) {
	c := steptest.Cluster(t, steptest.Small)
	kase := steptest.Case{Cluster: c, Workdir: t.TempDir()}
	here := filepath.Join(kase.Workdir, "certs", "kubernetes", manifest.EncryptionName)
	var first string
	for range 2 {
		s := conntest.New(t)
		programs(s)
		step := kubeadm.Init(c)
		if err := step.Run(t.Context(), kase.NewHost(t, s, step)); err != nil {
			t.Fatal(err)
		}
		f, ok := s.File(manifest.EncryptionConfig)
		text, err := os.ReadFile(here)
		if err != nil || !ok || string(text) != string(f.Data) || f.Mode != 0o600 {
			t.Fatalf("on the host %t with mode %v, here %v", ok, f.Mode, err)
		}
		if st, err := os.Stat(here); err != nil || st.Mode().Perm() != 0o600 {
			t.Errorf("here it has mode %v (%v)", st.Mode(), err)
		}
		if first == "" {
			first = string(text)
		}
		if string(text) != first {
			t.Error("another key was made")
		}
		for _, call := range s.Calls() {
			if strings.Contains(call.String(), key(t, text)) {
				t.Errorf("the key is in %s", call)
			}
		}
	}
	if err := os.WriteFile(here, []byte("lost\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := conntest.New(t)
	programs(s)
	step := kubeadm.Init(c)
	if err := step.Run(t.Context(), kase.NewHost(t, s, step)); err == nil || !strings.Contains(err.Error(), "not a valid EncryptionConfiguration") {
		t.Errorf("a key that is none: %v", err)
	}
	if _, ok := s.File("/etc/kubernetes/manifests/kube-apiserver.yaml"); ok {
		t.Error("and an API server was made")
	}
}

// key is the secret of an EncryptionConfiguration, which has 32 bytes.
func key(t *testing.T, text []byte) string {
	t.Helper()
	_, rest, ok := strings.Cut(string(text), "secret: ")
	word, _, _ := strings.Cut(rest, "\n")
	if raw, err := base64.StdEncoding.DecodeString(word); !ok || err != nil || len(raw) != 32 {
		t.Fatalf("a key of %d bytes (%v)", len(raw), err)
	}
	return word
}

// TestWithoutEncryptionThereIsNoKey, and none where the config has a file of its own.
func TestWithoutEncryptionThereIsNoKey(t *testing.T) {
	for _, with := range []string{"hardening: {relax: [encryption]}", "apiServer: {extraArgs: {encryption-provider-config: /etc/kubernetes/pki/own.yaml}}"} {
		synctest.Test(t, func(t *testing.T) {
			c := steptest.Cluster(t, spec("  kubernetes: {version: v1.32.2, "+with+"}\n"))
			kase := steptest.Case{Cluster: c, Host: c.Spec.Hosts[0], Workdir: t.TempDir()}
			s := conntest.New(t)
			programs(s)
			step := kubeadm.Init(c)
			if err := step.Run(t.Context(), kase.NewHost(t, s, step)); err != nil {
				t.Fatal(err)
			}
			if _, ok := s.File(manifest.EncryptionConfig); ok {
				t.Errorf("%s: there is a key", with)
			}
		})
	}
}
