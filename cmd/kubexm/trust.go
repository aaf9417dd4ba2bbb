package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/mensylisir/kubexm/bundle"
	"github.com/mensylisir/kubexm/bundle/sign"
	"github.com/mensylisir/kubexm/manifest"
)

// policyFlags are the flags of the commands that trust what they read.
type policyFlags struct {
	allowUnsigned bool
	keys          []string
	trustedRoot   string
	identity      string
	issuer        string
}

func (f *policyFlags) add(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringArrayVar(&f.keys, "key", nil, "a public key (cosign.pub) whose signature counts; may be given several times")
	fs.StringVar(&f.trustedRoot, "trusted-root", "", "of keyless signatures: Sigstore's trusted_root.json")
	fs.StringVar(&f.identity, "certificate-identity", "", "of keyless signatures: who signs, exactly as in the certificate")
	fs.StringVar(&f.issuer, "certificate-oidc-issuer", "", "of keyless signatures: who vouches for that name")
	fs.BoolVar(&f.allowUnsigned, "allow-unsigned", false,
		"accept a bundle whose maker cannot be proved; its bytes are checked all the same")
	cmd.MarkFlagsRequiredTogether("trusted-root", "certificate-identity", "certificate-oidc-issuer")
	_ = cmd.MarkFlagFilename("key", "pub", "pem")
	_ = cmd.MarkFlagFilename("trusted-root", "json")
}

// addDowngrade adds the flag that takes a bundle older than the cluster's.
func (f *siteFlags) addDowngrade(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.older, "allow-downgrade", false, "accept a bundle with a lower serial than one that the cluster has had")
}

// policy is what the flags say, and of what they leave open what the config does.
func (a *app) policy(f *policyFlags, c *manifest.Cluster) (bundle.Policy, error) {
	t := manifest.BundleTrust{}
	if c != nil {
		t = c.Spec.Bundle.Trust
	}
	if len(f.keys) > 0 || f.identity != "" { // who is named here replaces who is named there
		t.Keys, t.TrustedRoot, t.CertificateIdentity, t.CertificateOIDCIssuer = f.keys, f.trustedRoot, f.identity, f.issuer
	}
	p, err := sign.PolicyOf(t, ownVersion(), func(text string) { fmt.Fprintf(a.err, "warning: %s\n", text) })
	if err != nil {
		return bundle.Policy{}, err
	}
	p.AllowUnsigned = p.AllowUnsigned || f.allowUnsigned // whatever else is said
	return p, nil
}

// ownConfig reads the config that a person names; nil without one. Whom it trusts
// counts: what a bundle's own config says of that is no reason to trust it.
func (a *app) ownConfig(path string) (*manifest.Cluster, error) {
	if path == "" {
		return nil, nil
	}
	c, err := a.loadCluster(path, "")
	if err != nil {
		return nil, err
	}
	c.PlaceFiles(folderOf(path))
	return c, nil
}
