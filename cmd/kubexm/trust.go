package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/mensylisir/kubexm/bundle"
	"github.com/mensylisir/kubexm/bundle/sign"
	"github.com/mensylisir/kubexm/manifest"
)

// policyFlags are the flags that decide which signatures of a bundle are trusted.
type policyFlags struct {
	allowUnsigned bool
	keys          []string
	trustedRoot   string
	identity      string
	issuer        string
}

func (f *policyFlags) add(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringArrayVar(&f.keys, "key", nil, useKey)
	fs.StringVar(&f.trustedRoot, "trusted-root", "", "for keyless signatures: Sigstore's trusted_root.json")
	fs.StringVar(&f.identity, "certificate-identity", "", "for keyless signatures: identity in the signing certificate, exact match")
	fs.StringVar(&f.issuer, "certificate-oidc-issuer", "", "for keyless signatures: OIDC issuer of that identity")
	fs.BoolVar(&f.allowUnsigned, "allow-unsigned", false,
		"accept a bundle without a trusted signature; digests are still verified")
	cmd.MarkFlagsRequiredTogether("trusted-root", "certificate-identity", "certificate-oidc-issuer")
	_ = cmd.MarkFlagFilename("key", "pub", "pem")
	_ = cmd.MarkFlagFilename("trusted-root", "json")
}

// addDowngrade adds the flag that accepts a bundle older than the cluster's.
func (f *siteFlags) addDowngrade(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.older, "allow-downgrade", false, "accept a bundle with a lower serial than the cluster's")
}

// policy returns the trust policy of the flags; what they do not set comes from the
// config c, which may be nil.
func (a *app) policy(f *policyFlags, c *manifest.Cluster) (bundle.Policy, error) {
	t := manifest.BundleTrust{}
	if c != nil {
		t = c.Spec.Bundle.Trust
	}
	if len(f.keys) > 0 || f.identity != "" { // keys and identities of the flags replace those of the config
		t.Keys, t.TrustedRoot, t.CertificateIdentity, t.CertificateOIDCIssuer = f.keys, f.trustedRoot, f.identity, f.issuer
	}
	p, err := sign.PolicyOf(t, ownVersion(), func(text string) { fmt.Fprintf(a.err, "warning: %s\n", text) })
	if err != nil {
		return bundle.Policy{}, err
	}
	p.AllowUnsigned = p.AllowUnsigned || f.allowUnsigned
	return p, nil
}

// ownConfig reads the config at path; nil if path is empty. Its trust settings apply to
// bundles; those of a bundle's own config never do, since they would verify themselves.
func (a *app) ownConfig(path string) (*manifest.Cluster, error) {
	if path == "" {
		return nil, nil
	}
	c, err := a.loadCluster(path, "")
	if err != nil {
		return nil, err
	}
	c.ResolvePaths(folderOf(path))
	return c, nil
}
