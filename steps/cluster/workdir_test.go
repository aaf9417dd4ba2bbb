package cluster

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/mensylisir/kubexm/manifest/durable"
)

// TestWriteSecretLeavesOneFile: what a kill left beside a file is written over, and its
// bytes get nowhere.
func TestWriteSecretLeavesOneFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "applied", "config.yaml")
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(durable.TempPath(name), []byte("half of something longer"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := writeSecret(name, []byte("whole")); err != nil {
		t.Fatal(err)
	}
	all, err := os.ReadDir(filepath.Dir(name))
	if err != nil || len(all) != 1 {
		t.Errorf("%v %v", all, err)
	}
	if text, err := os.ReadFile(name); err != nil || string(text) != "whole" {
		t.Errorf("%q %v", text, err)
	}
}
