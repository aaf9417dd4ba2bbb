package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/mensylisir/kubexm/bundle"
	"github.com/mensylisir/kubexm/bundle/sign"
	"github.com/mensylisir/kubexm/installer/report"
)

// reading is the policy of commands that tell what an archive says of itself. They
// give nothing out, and trust anybody; where somebody is named, him alone.
func (a *app) reading(f *policyFlags) (bundle.Policy, error) {
	if !f.named() {
		return bundle.Policy{AllowUnsigned: true}, nil
	}
	return a.policy(f, nil)
}

// named tells whether the flags say whose signatures count.
func (f *policyFlags) named() bool { return len(f.keys) > 0 || f.identity != "" }

// vouched asks who made an archive that is copied as it is, where the flags say
// whose signature counts.
func (a *app) vouched(ctx context.Context, f *policyFlags, path string) error {
	if !f.named() {
		return nil
	}
	policy, err := a.policy(f, nil)
	if err != nil {
		return err
	}
	b, err := bundle.OpenPart(ctx, path, policy, bundle.Bases{})
	if err != nil {
		return report.Refused(err)
	}
	return b.Close()
}

// printVerify names the next command to type for an archive that was just written,
// with the flags that it was read with or, where these say nobody, with those that
// its signatures ask for. Volumes that make no bundle have no next command.
func (a *app) printVerify(ctx context.Context, f *policyFlags, path string) error {
	b, err := bundle.OpenPart(ctx, path, bundle.Policy{AllowUnsigned: true}, bundle.Bases{})
	if err != nil {
		return nil //nolint:nilerr // what was to be done is done; verify says what is wrong
	}
	signatures, err := b.Signatures()
	if cerr := b.Close(); err != nil || cerr != nil {
		return cerr
	}
	_, err = fmt.Fprintf(a.out, "  next  kubexm bundle verify %s %s\n", f.words(signatures), report.CommandLine(path))
	return err
}

// words are the flags that a next command takes for a bundle with these signatures.
func (f *policyFlags) words(signatures []byte) string {
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

// publicKeyFlag names the public half of a private key: the file beside it, where
// there is one.
func publicKeyFlag(private string) string {
	if public, ok := strings.CutSuffix(private, ".key"); ok && stands(public+".pub") {
		return report.CommandLine("--key", public+".pub")
	}
	return "--key cosign.pub"
}
