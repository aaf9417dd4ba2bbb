package controlplane

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/pki"
)

// secretboxKey is the length of its key in bytes (golang.org/x/crypto/nacl/secretbox).
const secretboxKey = 32

// encryptionHere is where this machine keeps the key that Secrets are encrypted with.
func encryptionHere(h *steps.Host) pki.Files {
	return pki.Files{Dir: filepath.Join(h.Workdir, "certs", "kubernetes")}
}

// newEncryption makes the API server's document with a new key. What was written
// in the clear before is still read.
func newEncryption() ([]byte, error) {
	key := make([]byte, secretboxKey)
	if _, err := rand.Read(key); err != nil {
		return nil, err
	}
	return Encode(Object{
		"apiVersion": "apiserver.config.k8s.io/v1", "kind": "EncryptionConfiguration",
		"resources": []Object{{
			"resources": []string{"secrets"},
			"providers": []Object{
				{"secretbox": Object{"keys": []Object{{"name": "kubexm-1", "secret": base64.StdEncoding.EncodeToString(key)}}}},
				{"identity": Object{}},
			},
		}},
	})
}

// encryption gives the document for the first master of a new cluster. It is
// here before it is there: a master that is lost right after its API server wrote
// the first Secret into a store elsewhere takes no key along.
func encryption(h *steps.Host) ([]byte, error) {
	text, err := encryptionHere(h).Once(manifest.EncryptionName, newEncryption)
	if err != nil {
		return nil, err
	}
	var doc struct{ Kind string }
	if err := yaml.Unmarshal(text, &doc); err != nil || doc.Kind != "EncryptionConfiguration" {
		return nil, steps.Advise(fmt.Errorf("%s is no EncryptionConfiguration", filepath.Join(encryptionHere(h).Dir, manifest.EncryptionName)),
			"bring the file back from a copy, or take it away where no cluster was made with it")
	}
	return text, nil
}

// Recall brings here what the first master's API server encrypts with: to a machine
// that lacks it, and in place of a key that somebody has replaced since. A cluster
// that was made without has none.
func Recall(ctx context.Context, h *steps.Host) error {
	have, err := h.ReadFile(ctx, manifest.EncryptionConfig)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	here, err := os.ReadFile(filepath.Join(encryptionHere(h).Dir, manifest.EncryptionName))
	if err == nil && string(have) == string(here) {
		return nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return encryptionHere(h).Replace(manifest.EncryptionName, have)
}

// Encrypts tells whether the API servers of a cluster that is made by this config
// encrypt by kubexm's document.
func Encrypts(c *manifest.Cluster) bool {
	const flag = "encryption-provider-config"
	all := With(hardened(c, manifest.OfAPIServer, nil), c.Spec.Kubernetes.APIServer.ExtraArgs)
	return slices.Contains(all, manifest.Arg{Name: flag, Value: manifest.EncryptionConfig})
}

// WithEncryption adds the document to what the first master gets before its API
// server starts for the first time. A store that was preserved has its own, which
// comes here too.
func WithEncryption(h *steps.Host, c *manifest.Cluster, keys map[string][]byte) (map[string][]byte, error) {
	if kept := keys[manifest.EncryptionName]; kept != nil {
		return keys, encryptionHere(h).Replace(manifest.EncryptionName, kept)
	}
	if !Encrypts(c) {
		return keys, nil
	}
	text, err := encryption(h)
	if err != nil {
		return nil, err
	}
	out := map[string][]byte{manifest.EncryptionName: text}
	maps.Copy(out, keys)
	return out, nil
}
