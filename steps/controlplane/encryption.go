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

// secretboxKey is the length of a secretbox key in bytes
// (golang.org/x/crypto/nacl/secretbox).
const secretboxKey = 32

// workdirFiles returns the folder of the workdir with the encryption configuration.
func workdirFiles(h *steps.Host) pki.Files {
	return pki.Files{Dir: filepath.Join(h.Workdir, "certs", "kubernetes")}
}

// newEncryption returns an EncryptionConfiguration with a new key. Secrets that were stored
// without encryption can still be read.
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

// encryption returns the configuration for the first master of a new cluster. It is stored
// in the workdir before it is written to the master: if that host is lost right after its
// API server wrote the first Secret to an external etcd, the key still exists.
func encryption(h *steps.Host) ([]byte, error) {
	text, err := workdirFiles(h).ReadOrCreate(manifest.EncryptionName, newEncryption)
	if err != nil {
		return nil, err
	}
	var doc struct{ Kind string }
	if err := yaml.Unmarshal(text, &doc); err != nil || doc.Kind != "EncryptionConfiguration" {
		return nil, steps.Advise(fmt.Errorf("%s is not a valid EncryptionConfiguration", filepath.Join(workdirFiles(h).Dir, manifest.EncryptionName)),
			"restore the file from a backup, or remove it if no cluster was created with it")
	}
	return text, nil
}

// Recall copies the encryption configuration of the first master to the workdir, if the
// workdir has none or another one. It does nothing for a cluster without encryption.
func Recall(ctx context.Context, h *steps.Host) error {
	have, err := h.ReadFile(ctx, manifest.EncryptionConfig)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	own, err := os.ReadFile(filepath.Join(workdirFiles(h).Dir, manifest.EncryptionName))
	if err == nil && string(have) == string(own) {
		return nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return workdirFiles(h).Replace(manifest.EncryptionName, have)
}

// Encrypts reports whether API servers with this config use kubexm's encryption
// configuration.
func Encrypts(c *manifest.Cluster) bool {
	const flag = "encryption-provider-config"
	all := MergeFlags(hardened(c, manifest.OfAPIServer, nil), c.Spec.Kubernetes.APIServer.ExtraArgs)
	return slices.Contains(all, manifest.Arg{Name: flag, Value: manifest.EncryptionConfig})
}

// WithEncryption adds the encryption configuration to the keys that the first master gets
// before its first start. If keys are those of preserved etcd data, their configuration is
// used, and copied to the workdir.
func WithEncryption(h *steps.Host, c *manifest.Cluster, keys map[string][]byte) (map[string][]byte, error) {
	if kept := keys[manifest.EncryptionName]; kept != nil {
		return keys, workdirFiles(h).Replace(manifest.EncryptionName, kept)
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
