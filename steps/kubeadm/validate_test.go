package kubeadm_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

// judge is the kubeadm that the lab builds; it takes documents for its own minor
// version and those beside it.
const judge = "v1.32.2"

var version = regexp.MustCompile(`(?m)^kubernetesVersion: .*$`)

// TestKubeadmTakesItsConfigs asks kubeadm itself about every golden file.
func TestKubeadmTakesItsConfigs(t *testing.T) {
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Skip(err)
	}
	program := filepath.Join(cache, "kubexm-lab", "components", "kubernetes", judge, runtime.GOARCH, "kubeadm")
	if _, err := os.Stat(program); err != nil {
		t.Skipf("the lab's kubeadm is not built: %v", err)
	}
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal("no golden files", err)
	}
	validate := func(t *testing.T, text string) string {
		t.Helper()
		file := filepath.Join(t.TempDir(), "config.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.CommandContext(t.Context(), program, "config", "validate", "--config", file).CombinedOutput()
		if err == nil && strings.TrimSpace(string(out)) == "ok" {
			return ""
		}
		return string(out)
	}
	for _, f := range files {
		t.Run(strings.TrimSuffix(filepath.Base(f), ".yaml"), func(t *testing.T) {
			text, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			said := validate(t, version.ReplaceAllString(string(text), "kubernetesVersion: "+judge))
			if strings.Contains(string(text), "/v1beta3") { // which it says is old, and reads
				said = withoutLine(said, "uses an old API spec")
			}
			if said != "" {
				t.Errorf("kubeadm says: %s", said)
			}
		})
	}
	// It says so where a field is not one.
	text, err := os.ReadFile("testdata/init-1.32.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, field := range []string{"bindPort:", "certSANs:", "maxPods:", "masqueradeAll:"} {
		wrong := strings.Replace(string(text), field, "x"+field, 1)
		if wrong == string(text) || validate(t, wrong) == "" {
			t.Errorf("kubeadm takes x%s", field)
		}
	}
}

func withoutLine(text, about string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		if !strings.Contains(line, about) && strings.TrimSpace(line) != "ok" {
			out.WriteString(line)
		}
	}
	return out.String()
}
