package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mensylisir/kubexm/bundle"
	"github.com/mensylisir/kubexm/cmd/kubexm/console"
	"github.com/mensylisir/kubexm/installer/report"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/refusal"
	"github.com/mensylisir/kubexm/registry/serve"
)

func (a *app) registryCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "registry",
		Short: "Serve a bundle as a registry, or push its images to one",
		Args:  cobra.NoArgs,
	}
	cmd.AddCommand(a.registryServe(), a.registryPush(), a.registryLogin())
	return cmd
}

// serveFlags are the flags of registry serve.
type serveFlags struct {
	policyFlags
	baseFlags
	passwordFlags
	bundle    string
	listen    string
	signKey   string
	cert, key string
	plainHTTP bool
	namespace string
}

func (a *app) registryServe() *cobra.Command {
	f := &serveFlags{}
	cmd := &cobra.Command{
		Use:   "serve --bundle ARCHIVE",
		Short: "Serve a bundle as a read-only registry",
		Long: `Serve a bundle's images, files and packages directly from the archive, until interrupted. Nothing
is unpacked and nothing can be changed. Every digest is verified while it is read.

  /v2/…        a registry: each image under the name that it has at a site, which begins with its
               upstream registry (registry.k8s.io/pause), and under its path alone (pause) if
               only one upstream has it
  /files/…     files, as COMPONENT/VERSION/OS-ARCH/NAME; a folder lists its contents
  /packages/…  package repositories, as DEBIAN-12/ARCH

With --packages-key the package repositories are signed. apt and dnf verify them with the public key,
which is also served as /packages/kubexm.asc. The key is an OpenPGP private key as written by
"gpg --export-secret-keys"; the passphrase of an encrypted key is read from KUBEXM_KEY_PASSWORD.

An image index stays as published: platforms that it lists but the bundle does not contain are
answered with 404.

Without a certificate the registry listens only on loopback addresses; --plain-http allows others.`,
		Example: `  kubexm registry serve --key cosign.pub --bundle demo.tar.zst
  kubexm registry serve --key cosign.pub --bundle demo.tar.zst --listen :5000 \
    --tls-cert tls.crt --tls-key tls.key --packages-key packages.key
  crane pull --insecure 127.0.0.1:5000/registry.k8s.io/pause:3.10 pause.tar`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.serveBundle(cmd.Context(), f) },
	}
	fs := cmd.Flags()
	fs.StringVarP(&f.bundle, "bundle", "b", "", useBundle)
	fs.StringVar(&f.listen, "listen", "127.0.0.1:5000", "address and port to listen on")
	fs.StringVar(&f.cert, "tls-cert", "", "TLS server certificate (PEM)")
	fs.StringVar(&f.key, "tls-key", "", "private key of the TLS certificate (PEM)")
	fs.StringVar(&f.signKey, "packages-key", "", "OpenPGP private key to sign package repositories with")
	fs.BoolVar(&f.plainHTTP, "plain-http", false, also(usePlainHTTP, "also on addresses other than loopback"))
	fs.StringVar(&f.namespace, "namespace", "", "prefix of every repository (default the config's spec.registry.namespaceOverride)")
	_ = cmd.MarkFlagRequired("bundle")
	_ = cmd.MarkFlagFilename("bundle", "tar.zst", "001")
	_ = cmd.MarkFlagFilename("tls-cert", "pem", "crt")
	_ = cmd.MarkFlagFilename("tls-key", "pem", "key")
	cmd.MarkFlagsRequiredTogether("tls-cert", "tls-key")
	cmd.MarkFlagsMutuallyExclusive("tls-cert", "plain-http")
	_ = cmd.MarkFlagFilename("packages-key", "key", "asc", "gpg")
	f.policyFlags.add(cmd)
	f.passwordFlags.add(cmd)
	f.baseFlags.add(cmd)
	a.outputFlag(cmd, "text", "json")
	return cmd
}

func (a *app) serveBundle(ctx context.Context, f *serveFlags) error {
	if err := f.check(); err != nil {
		return err
	}
	secure, err := f.tls()
	if err != nil {
		return err
	}
	policy, err := a.policy(&f.policyFlags, nil)
	if err != nil {
		return err
	}
	b, err := bundle.Open(ctx, f.bundle, policy, f.bases...)
	if err != nil {
		return report.Refused(err)
	}
	defer b.Close()
	if f.namespace == "" {
		f.namespace = namespaceOf(b)
	}
	key, err := a.packagesKey(ctx, f)
	if err != nil {
		return err
	}
	h, err := serve.New(ctx, b, b.Lock, serve.Options{Namespace: f.namespace, Log: a.log, Key: key})
	if err != nil {
		return report.Refused(err)
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", f.listen)
	if err != nil {
		return &refusal.Error{Err: err, Kind: refusal.Failed, Advice: "choose another address with --listen; port 0 is any free port"}
	}
	at := url.URL{Scheme: "http", Host: l.Addr().String()}
	if secure != nil {
		at.Scheme, l = "https", tls.NewListener(l, secure)
	}
	if err := a.printServing(f, b, h.Contents(), at, key); err != nil {
		return errors.Join(err, l.Close())
	}
	return serve.Run(ctx, l, h, a.log)
}

// packagesKey reads the key that package repositories are signed with; nil without
// --packages-key.
func (a *app) packagesKey(ctx context.Context, f *serveFlags) (*serve.Key, error) {
	if f.signKey == "" {
		return nil, nil //nolint:nilnil // no key is given
	}
	text, err := readSecret(f.signKey)
	if err != nil {
		return nil, err
	}
	key, err := serve.ReadKey(text, func() ([]byte, error) {
		return a.keyPassword(ctx, &f.passwordFlags, "Password for "+f.signKey+": ", false)
	})
	if errors.Is(err, serve.ErrKey) {
		return nil, &refusal.Error{Err: fmt.Errorf("--packages-key %s: %w", f.signKey, err), Kind: refusal.Usage, Advice: "gpg --armor --export-secret-keys FINGERPRINT > packages.key"}
	}
	return key, err
}

// tls reads the certificate. It returns nil without one, and an error if the address is
// not a loopback address and neither a certificate nor --plain-http is given.
func (f *serveFlags) tls() (*tls.Config, error) {
	if f.cert != "" {
		pair, err := tls.LoadX509KeyPair(f.cert, f.key)
		if err != nil {
			return nil, &refusal.Error{Err: fmt.Errorf("read the certificate: %w", err), Kind: refusal.Usage, Advice: "specify both as PEM files: --tls-cert and --tls-key"}
		}
		return &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}, nil
	}
	host, _, err := net.SplitHostPort(f.listen)
	if err != nil {
		return nil, &refusal.Error{Err: fmt.Errorf("--listen %s: %w", f.listen, err), Kind: refusal.Usage, Advice: "write it as ADDRESS:PORT"}
	}
	if ip := net.ParseIP(host); !f.plainHTTP && host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return nil, &refusal.Error{
			Err: fmt.Errorf("%s is not a loopback address, and no certificate was given", f.listen), Kind: refusal.Usage,
			Advice: "use --tls-cert and --tls-key, or --plain-http to serve without TLS",
		}
	}
	return nil, nil //nolint:nilnil // neither TLS nor an error
}

// namespaceOf returns the namespace of all images in the bundle's config; "" if it sets
// none.
func namespaceOf(b *bundle.Bundle) string {
	c, problems := manifest.Decode(strings.NewReader(string(b.Config)))
	if c == nil || problems.Err() != nil {
		return "" // a config of a newer kubexm: images are served under names without a namespace
	}
	return c.Spec.Registry.NamespaceOverride
}

// printServing prints the addresses that are served, as text or as one line of JSON.
func (a *app) printServing(f *serveFlags, b *bundle.Bundle, c serve.Contents, at url.URL, key *serve.Key) error {
	signedBy := ""
	if key != nil {
		signedBy = key.Fingerprint()
	}
	if a.structured() {
		return a.printLine(struct {
			URL       string `json:"url"`
			Root      string `json:"root"`
			Namespace string `json:"namespace,omitempty"`
			SignedBy  string `json:"packagesKey,omitempty"` // fingerprint
			serve.Contents
		}{at.String(), b.Root.Digest.String(), f.namespace, signedBy, c})
	}
	text := fmt.Sprintf("serving %s on %s, until interrupted\n  images    %s in %s under %s/\n", f.bundle, at.String(),
		console.FormatCount(c.Images, "image"), repositories(c.Repositories), strings.TrimSuffix(at.Host+"/"+f.namespace, "/"))
	if c.Files > 0 {
		text += fmt.Sprintf("  files     %s/files/\n", at.String())
	}
	if c.Packages > 0 {
		text += fmt.Sprintf("  packages  %s/packages/\n", at.String())
		if key != nil {
			text += fmt.Sprintf("            signed by %s: %s%s\n", signedBy, at.String(), serve.PublicKey)
		}
	}
	_, err := fmt.Fprint(a.out, text)
	return err
}

func repositories(n int) string {
	if n == 1 {
		return "1 repository"
	}
	return fmt.Sprintf("%d repositories", n)
}
