package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/mensylisir/kubexm/bundle"
	"github.com/mensylisir/kubexm/bundle/sign"
	"github.com/mensylisir/kubexm/installer/report"
)

// reading returns the policy of commands that only print an archive's metadata. Without
// a key or an identity they accept any signature or none.
func (a *app) reading(f *policyFlags) (bundle.Policy, error) {
	if !f.named() {
		return bundle.Policy{AllowUnsigned: true}, nil
	}
	return a.policy(f, nil)
}

// named reports whether the flags set a key or an identity.
func (f *policyFlags) named() bool { return len(f.keys) > 0 || f.identity != "" }

// checkSignature verifies the signature of an archive that is copied unchanged, if the
// flags set a key or an identity.
func (a *app) checkSignature(ctx context.Context, f *policyFlags, path string) error {
	if !f.named() {
		return nil
	}
	policy, err := a.policy(f, nil)
	if err != nil {
		return err
	}
	b, err := bundle.OpenPartial(ctx, path, policy, bundle.Bases{})
	if err != nil {
		return report.Refused(err)
	}
	return b.Close()
}

// printVerify prints the `bundle verify` command for an archive that was just written:
// with the flags of this command or, if these set no key, with flags that match its
// signatures. It prints nothing for volumes that are not a bundle.
func (a *app) printVerify(ctx context.Context, f *policyFlags, path string) error {
	b, err := bundle.OpenPartial(ctx, path, bundle.Policy{AllowUnsigned: true}, bundle.Bases{})
	if err != nil {
		return nil //nolint:nilerr // the command succeeded; verify reports what is wrong
	}
	signatures, err := b.Signatures()
	if cerr := b.Close(); err != nil || cerr != nil {
		return cerr
	}
	_, err = fmt.Fprintf(a.out, "  next  kubexm bundle verify %s %s\n", f.verifyFlags(signatures), report.CommandLine(path))
	return err
}

// verifyFlags returns the flags of `bundle verify` for a bundle with these signatures.
func (f *policyFlags) verifyFlags(signatures []byte) string {
	switch {
	case len(strings.TrimSpace(string(signatures))) == 0:
		return "--allow-unsigned"
	case f.named():
		var argv []string
		for _, key := range f.keys {
			argv = append(argv, "--key", key)
		}
		if f.identity != "" {
			argv = append(argv, "--trusted-root", f.trustedRoot, "--certificate-identity", f.identity, "--certificate-oidc-issuer", f.issuer)
		}
		return report.CommandLine(argv...)
	case sign.Keyless(signatures):
		return "--trusted-root trusted_root.json --certificate-identity … --certificate-oidc-issuer …"
	}
	return publicKeyFlag("")
}

// publicKeyFlag returns the --key flag for a private key: the .pub file beside it if it
// exists, else cosign.pub.
func publicKeyFlag(private string) string {
	if public, ok := strings.CutSuffix(private, ".key"); ok && exists(public+".pub") {
		return report.CommandLine("--key", public+".pub")
	}
	return "--key cosign.pub"
}
