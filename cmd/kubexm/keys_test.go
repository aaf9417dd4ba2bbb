package main

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mensylisir/kubexm/bundle/sign"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/refusal"
)

// TestSecretFiles: what opens a signing key is nobody's but its owner's to read.
func TestSecretFiles(t *testing.T) {
	dir := t.TempDir()
	pair, err := sign.Generate([]byte("canary"))
	if err != nil {
		t.Fatal(err)
	}
	key, password := filepath.Join(dir, "cosign.key"), filepath.Join(dir, "password")
	pipe := filepath.Join(dir, "pipe")
	if err := errors.Join(os.WriteFile(key, pair.Private, 0o600), os.WriteFile(password, []byte("canary\n"), 0o600), unix.Mkfifo(pipe, 0o600), os.Chmod(pipe, 0o622)); err != nil {
		t.Fatal(err)
	}
	a := &app{env: func(string) (string, bool) { return "", false }, in: strings.NewReader("")}
	open := func(passwords string) error {
		_, err := a.signer(t.Context(), key, &passwordFlags{file: passwords})
		return err
	}
	for _, mode := range []fs.FileMode{0o600, 0o400, 0o640, 0o604, 0o622} {
		for _, path := range []string{key, password} {
			if err := os.Chmod(path, mode); err != nil {
				t.Fatal(err)
			}
			err := open(password)
			if mode&0o077 == 0 {
				if err != nil {
					t.Errorf("%s with mode %o: %v", path, mode, err)
				}
				continue
			}
			var c *refusal.Error
			if !errors.Is(err, sign.ErrKeyMode) || !errors.As(err, &c) || c.Kind != refusal.Usage || !strings.HasPrefix(c.Advice, "chmod 600 "+path) {
				t.Errorf("%s with mode %o: %v", path, mode, err)
			}
			if err := os.Chmod(path, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	// What a shell makes of <(…) is no file whose mode says anything.
	go func() { _ = os.WriteFile(pipe, []byte("canary"), 0) }()
	if err := open(pipe); err != nil {
		t.Errorf("a password out of a pipe: %v", err)
	}
}

// TestOldTrustedRoot: one that nobody has brought up to date for long is said.
func TestOldTrustedRoot(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "bundle", "sign", "testdata", "keyless", "trusted_root.json"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "trusted_root.json")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	for days, want := range map[int]string{0: "", 179: "", 181: "warning: " + path + " is 181 days old: keys revoked since then are still accepted, newer keys are not\n", 400: "is 400 days old"} {
		written := time.Now().Add(-time.Duration(days)*24*time.Hour - time.Minute)
		if err := os.Chtimes(path, written, written); err != nil {
			t.Fatal(err)
		}
		var said bytes.Buffer
		a := &app{err: &said}
		p, err := a.policy(&policyFlags{}, &manifest.Cluster{Spec: manifest.Spec{Bundle: manifest.Bundle{Trust: manifest.BundleTrust{
			TrustedRoot: path, CertificateIdentity: "me@example.org", CertificateOIDCIssuer: "https://issuer.example.org"}}}})
		if err != nil || p.Verifier == nil {
			t.Fatal(err)
		}
		if got := said.String(); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%d days: said %q, want %q", days, got, want)
		}
	}
}

// TestNextWords: what a person is told to type names who is trusted, in words of a shell.
func TestNextWords(t *testing.T) {
	keyless, err := os.ReadFile(filepath.Join("..", "..", "bundle", "sign", "testdata", "keyless", "statement.sigstore.json"))
	if err != nil {
		t.Fatal(err)
	}
	keyed, err := os.ReadFile(filepath.Join("..", "..", "bundle", "sign", "testdata", "cosign2", "statement.sigstore.json"))
	if err != nil {
		t.Fatal(err)
	}
	identity := policyFlags{trustedRoot: "tr.json", identity: "me@example.org", issuer: "https://issuer.example.org"}
	for _, x := range []struct {
		flags      policyFlags
		signatures []byte
		want       string
	}{
		{policyFlags{}, []byte(" \n"), "--allow-unsigned"},
		{policyFlags{keys: []string{"a.pub"}}, nil, "--allow-unsigned"},
		{policyFlags{allowUnsigned: true}, keyed, "--key cosign.pub"},
		{policyFlags{keys: []string{"a.pub", "$(b)"}}, keyed, "--key a.pub --key '$(b)'"},
		{policyFlags{allowUnsigned: true}, keyless, "--trusted-root trusted_root.json --certificate-identity … --certificate-oidc-issuer …"},
		{policyFlags{allowUnsigned: true}, append(append([]byte{}, keyless...), keyed...), "--key cosign.pub"},
		{identity, keyless, "--trusted-root tr.json --certificate-identity me@example.org --certificate-oidc-issuer https://issuer.example.org"},
	} {
		if got := x.flags.verifyFlags(x.signatures); got != x.want {
			t.Errorf("%+v: %s, want %s", x.flags, got, x.want)
		}
	}
}
