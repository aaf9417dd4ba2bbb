package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/mensylisir/kubexm/bundle/sign"
	"github.com/mensylisir/kubexm/manifest"
)

// TestNamedKeyRequiresASignature: allowUnsigned of a config does not outvote a key or
// an identity that is named; only the flag does.
func TestNamedKeyRequiresASignature(t *testing.T) {
	pair, err := sign.Generate(nil)
	if err != nil {
		t.Fatal(err)
	}
	key := filepath.Join(t.TempDir(), "cosign.pub")
	if err := os.WriteFile(key, pair.Public, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		flags    policyFlags
		config   manifest.BundleTrust
		unsigned bool
	}{
		"nothing":                      {},
		"the config alone":             {config: manifest.BundleTrust{AllowUnsigned: true}, unsigned: true},
		"the flag alone":               {flags: policyFlags{allowUnsigned: true}, unsigned: true},
		"a key's flag and the config":  {flags: policyFlags{keys: []string{key}}, config: manifest.BundleTrust{AllowUnsigned: true}},
		"a key and that in the config": {config: manifest.BundleTrust{AllowUnsigned: true, Keys: []string{key}}},
		"a key's flag and the flag":    {flags: policyFlags{keys: []string{key}, allowUnsigned: true}, unsigned: true},
		"a key and the flag":           {flags: policyFlags{allowUnsigned: true}, config: manifest.BundleTrust{Keys: []string{key}}, unsigned: true},
	} {
		cluster := &manifest.Cluster{}
		cluster.Spec.Bundle.Trust = c.config
		p, err := (&app{}).policy(&c.flags, cluster)
		if err != nil || p.AllowUnsigned != c.unsigned {
			t.Errorf("%s: allowUnsigned %t, %v", name, p.AllowUnsigned, err)
		}
	}
}
