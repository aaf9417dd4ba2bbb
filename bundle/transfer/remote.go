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

// Remote is the location of a complete bundle in a registry.
type Remote struct {
	Reference    string // HOST/REPOSITORY:TAG; for a pull also HOST/REPOSITORY@sha256:…
	PlainHTTP    bool   // use HTTP without TLS
	CAFile       string // additional CA certificates, PEM
	DockerConfig string // file with registry credentials; "" is docker's default
	UserAgent    string
	Timeouts     Timeouts // timeouts
}

// ReferenceError reports a reference that is not valid for a bundle.
type ReferenceError struct{ Reference, What string }

func (e *ReferenceError) Error() string {
	return fmt.Sprintf("%s: %s; write it as HOST/REPOSITORY:TAG", e.Reference, e.What)
}

// repository returns the client of the repository.
func (r Remote) repository() (*remote.Repository, error) {
	ref, err := orasregistry.ParseReference(r.Reference)
	if err != nil {
		return nil, &ReferenceError{r.Reference, err.Error()}
	}
	if ref.Reference == "" {
		return nil, &ReferenceError{r.Reference, "no tag"}
	}
	// Many registries refuse deletions, and an unreferenced index of referrers is harmless.
	repo := &remote.Repository{Reference: ref, PlainHTTP: r.PlainHTTP, SkipReferrersGC: true}
	client, err := r.client()
	repo.Client = client
	return repo, err
}

func (r Remote) client() (*auth.Client, error) {
	t := r.Timeouts.Transport(nil)
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
			return nil, fmt.Errorf("read certificates: %s contains none in PEM form", r.CAFile)
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

// Client returns an authenticated client for the registry. It trusts the system's
// certificates and those of CAFile, and uses docker's credentials.
func (r Remote) Client() (*auth.Client, error) { return r.client() }

// Sources returns the same settings for a fetch.Client.
func (r Remote) Sources() manifest.Sources {
	s := manifest.Sources{CAFile: r.CAFile, DockerConfig: r.DockerConfig}
	if r.PlainHTTP {
		host, _, _ := strings.Cut(r.Reference, "/")
		s.Replace = []manifest.Replacement{{From: host, To: host, PlainHTTP: true}}
	}
	return s
}

// Registry is the part of a fetch.Client that a pull needs.
type Registry interface {
	ImageContent(ctx context.Context, im manifest.ImagePin) ([]fetch.Content, error)
	FetchContent(ctx context.Context, im manifest.ImagePin, c fetch.Content) error
	StreamContent(im manifest.ImagePin, c fetch.Content) fetch.Stream
}

// SparseError reports that a registry rejected an index because the bundle does not include every
// platform that the index lists.
type SparseError struct{ Err error }

func (e *SparseError) Error() string {
	return "the registry rejects an index of which not all platforms are present: allow that " +
		"(in distribution's config: validation.manifests.indexes.platforms: none), or include every platform in the bundle: " + e.Err.Error()
}

// Unwrap returns the registry's error.
func (e *SparseError) Unwrap() error { return e.Err }

// Sparse returns a *SparseError if err, the registry's response to d, is that rejection.
// Push sends all manifests that the bundle has of an index before the index, so an error
// about an unknown manifest has this cause. Other errors are returned unchanged.
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
