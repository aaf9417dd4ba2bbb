package transfer

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	orasregistry "oras.land/oras-go/v2/registry"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/credentials"
	"oras.land/oras-go/v2/registry/remote/errcode"
	"oras.land/oras-go/v2/registry/remote/retry"

	"github.com/mensylisir/kubexm/bundle"
	"github.com/mensylisir/kubexm/bundle/fetch"
	"github.com/mensylisir/kubexm/manifest"
)

// Remote is a place for a whole bundle in a registry.
type Remote struct {
	Reference    string // HOST/REPOSITORY:TAG; to pull also HOST/REPOSITORY@sha256:…
	PlainHTTP    bool   // speak HTTP without TLS
	CAFile       string // further certificates, PEM
	DockerConfig string // registry credentials; "" is docker's own place for them
	UserAgent    string
	Waits        Waits // how long the registry may say nothing
}

// ReferenceError says that a reference does not name a bundle's place.
type ReferenceError struct{ Reference, What string }

func (e *ReferenceError) Error() string {
	return fmt.Sprintf("%s: %s; write it as HOST/REPOSITORY:TAG", e.Reference, e.What)
}

// repository opens the place.
func (r Remote) repository() (*remote.Repository, error) {
	ref, err := orasregistry.ParseReference(r.Reference)
	if err != nil {
		return nil, &ReferenceError{r.Reference, err.Error()}
	}
	if ref.Reference == "" {
		return nil, &ReferenceError{r.Reference, "no tag"}
	}
	// Many registries refuse to delete, and an index of referrers that nothing
	// names any more does no harm.
	repo := &remote.Repository{Reference: ref, PlainHTTP: r.PlainHTTP, SkipReferrersGC: true}
	client, err := r.client()
	repo.Client = client
	return repo, err
}

func (r Remote) client() (*auth.Client, error) {
	t := r.Waits.Transport(nil)
	t.Proxy, t.MaxIdleConnsPerHost, t.ForceAttemptHTTP2 = http.ProxyFromEnvironment, 16, true
	if r.CAFile != "" {
		pool, err := x509.SystemCertPool()
		if err != nil {
			return nil, fmt.Errorf("read the system's certificates: %w", err)
		}
		pem, err := os.ReadFile(r.CAFile)
		if err != nil {
			return nil, fmt.Errorf("read certificates: %w", err)
		}
		if !pool.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("read certificates: %s holds none in PEM form", r.CAFile)
		}
		t.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	var store credentials.Store
	var err error
	if r.DockerConfig != "" {
		store, err = credentials.NewFileStore(r.DockerConfig)
	} else {
		store, err = credentials.NewStoreFromDocker(credentials.StoreOptions{})
	}
	if err != nil {
		return nil, fmt.Errorf("read registry credentials: %w", err)
	}
	c := &auth.Client{Client: &http.Client{Transport: retry.NewTransport(t)}, Cache: auth.NewCache(), Credential: credentials.Credential(store)}
	c.SetUserAgent(r.UserAgent)
	return c, nil
}

// Client speaks to the place's registry: with the system's certificates and those
// of CAFile, and with docker's credentials.
func (r Remote) Client() (*auth.Client, error) { return r.client() }

// Sources says the same to a fetch.Client.
func (r Remote) Sources() manifest.Sources {
	s := manifest.Sources{CAFile: r.CAFile, DockerConfig: r.DockerConfig}
	if r.PlainHTTP {
		host, _, _ := strings.Cut(r.Reference, "/")
		s.Replace = []manifest.Replacement{{From: host, To: host, PlainHTTP: true}}
	}
	return s
}

// Registry is what pulling needs of a fetch.Client.
type Registry interface {
	ImageContent(ctx context.Context, im manifest.ImagePin) ([]fetch.Content, error)
	FetchContent(ctx context.Context, im manifest.ImagePin, c fetch.Content) error
}

// SparseError says that a registry refused an index because the bundle does not
// carry every platform that it names.
type SparseError struct{ Err error }

func (e *SparseError) Error() string {
	return "the registry refuses an index whose platforms are not all there: allow that " +
		"(in distribution's config: validation.manifests.indexes.platforms: none), or bundle every platform: " + e.Err.Error()
}

// Unwrap gives what the registry said.
func (e *SparseError) Unwrap() error { return e.Err }

// Sparse recognises that refusal in what a registry answered to d: every
// manifest that the bundle has of this index was sent before it, and the
// registry says that one is unknown.
func Sparse(d v1.Descriptor, err error) error {
	var r *errcode.ErrorResponse
	if !bundle.IsIndex(d.MediaType) || !errors.As(err, &r) {
		return err
	}
	for _, e := range r.Errors {
		if e.Code == errcode.ErrorCodeManifestUnknown || e.Code == errcode.ErrorCodeManifestBlobUnknown || e.Code == "MANIFEST_INVALID" {
			return &SparseError{Err: err}
		}
	}
	return err
}
