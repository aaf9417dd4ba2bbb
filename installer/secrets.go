package installer

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"

	"github.com/mensylisir/kubexm/manifest"
)

// hostSecrets returns the login secrets of a host.
func hostSecrets(h manifest.Host) map[string]manifest.Secret {
	m := map[string]manifest.Secret{"password": h.Password, "passphrase": h.Passphrase, "sudoPassword": h.SudoPassword}
	if h.JumpHost != nil {
		m["jumpHost.password"], m["jumpHost.passphrase"] = h.JumpHost.Password, h.JumpHost.Passphrase
	}
	return m
}

// readSecret reads a file that a config references as a secret or a private key. It refuses a
// file that other users can access.
func readSecret(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read: a close error loses no data
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if open := st.Mode().Perm() & 0o077; open != 0 {
		return nil, &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("other users can read it (mode %04o): chmod 600 it", st.Mode().Perm())}
	}
	return io.ReadAll(f)
}

// registrySecrets returns the passwords of registries, by their fields.
func registrySecrets(c *manifest.Cluster) map[string]manifest.Secret {
	m := map[string]manifest.Secret{}
	for host, a := range c.Spec.Registry.Auths {
		m[fmt.Sprintf("spec.registry.auths[%q].password", host)] = a.Password
	}
	return m
}

// reveal returns the value of a secret.
func (s *Session) reveal(x manifest.Secret) (string, error) { return x.Reveal(s.LookupEnv, readSecret) }

// checkSecrets returns an error for every secret of the config that has no value. Secrets of
// registries are only required with a bundle: without one, nothing is sent there.
func (s *Session) checkSecrets() error {
	var ps manifest.Problems
	for i, h := range s.Cluster.Spec.Hosts {
		for field, secret := range hostSecrets(h) {
			if _, err := secret.Reveal(s.LookupEnv, readSecret); errors.Is(err, manifest.ErrSecretMissing) {
				ps = append(ps, manifest.Problem{Path: fmt.Sprintf("spec.hosts[%d].%s", i, field), Message: err.Error(),
					Advice: "set it, or specify the config with its secrets with -f"})
			}
		}
	}
	if s.Bundle != nil {
		for field, secret := range registrySecrets(s.Cluster) {
			if _, err := s.reveal(secret); errors.Is(err, manifest.ErrSecretMissing) {
				ps = append(ps, manifest.Problem{Path: field, Message: err.Error(), Advice: "set it, or specify the config with its secrets with -f"})
			}
		}
	}
	ps.Sort()
	return ps.Err()
}

// secrets returns the values to mask in the output of hosts: every secret of the config whose
// value is known.
func (s *Session) secrets() []string {
	var out []string
	for _, x := range s.Cluster.Secrets() {
		if v, err := s.reveal(x); err == nil && v != "" {
			out = append(out, v)
		}
	}
	for _, a := range s.Cluster.Spec.Registry.Auths {
		if v, err := s.reveal(a.Password); err == nil && v != "" {
			out = append(out, base64.StdEncoding.EncodeToString([]byte(a.Username+":"+v))) // as in request headers
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
