package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	registry "github.com/google/go-containerregistry/pkg/v1/remote/transport"
)

// repository is the location of one image, in the registry that replaces upstream's if
// there is one.
type repository struct {
	client   *Client
	address  string         // upstream's reference, for messages
	ref      name.Reference // the reference to request
	plain    bool
	identity string // what to resolve: a tag, or "sha256:…"
}

// repository returns the location to request reference from.
func (c *Client) repository(reference string) (*repository, error) {
	target, plain := c.options.Sources.Rewrite(reference)
	target = strings.TrimPrefix(strings.TrimPrefix(target, "https://"), "http://")
	var options []name.Option
	if plain {
		options = append(options, name.Insecure)
	}
	ref, err := name.ParseReference(target, options...)
	if err != nil {
		return nil, fmt.Errorf("image reference %s: %w", target, err)
	}
	return &repository{client: c, address: reference, ref: ref, plain: plain, identity: ref.Identifier()}, nil
}

// byDigest reports whether the reference contains the digest.
func (r *repository) byDigest() bool { return strings.HasPrefix(r.identity, "sha256:") }

// url returns the address of a manifest or blob; what is "manifests" or "blobs".
func (r *repository) url(what, identity string) *url.URL {
	u := &url.URL{
		Scheme: "https", Host: r.ref.Context().RegistryStr(),
		Path: "/v2/" + r.ref.Context().RepositoryStr() + "/" + what + "/" + identity,
	}
	if r.plain {
		u.Scheme = "http"
	}
	return u
}

// target returns the requested reference of a blob or manifest.
func (r *repository) target(identity string) string {
	if strings.HasPrefix(identity, "sha256:") {
		return r.ref.Context().Name() + "@" + identity
	}
	return r.ref.Context().Name() + ":" + identity
}

// login returns the client for r's requests. The first call reads the registry's
// authentication method and logs in.
func (r *repository) login(ctx context.Context) (*http.Client, error) {
	c, place := r.client, r.ref.Context()
	key := r.url("", "").String()
	leave, err := c.entering.enter(ctx, key)
	if err != nil {
		return nil, err
	}
	defer leave()
	c.mu.Lock()
	client := c.repositories[key]
	c.mu.Unlock()
	if client != nil {
		return client, nil
	}
	auth, err := authn.Resolve(ctx, c.keys, place)
	if err != nil {
		return nil, fmt.Errorf("credentials for %s: %w", place, err)
	}
	var base http.RoundTripper = c.base
	if r.plain {
		base = withoutTLS{c.base, place.RegistryStr(), new(atomic.Pointer[error])}
	}
	t, err := registry.NewWithContext(ctx, place.Registry, auth, base, []string{place.Scope(registry.PullScope)})
	if err != nil {
		return nil, r.loginError(err)
	}
	client = &http.Client{Transport: t, CheckRedirect: checkRedirect}
	c.mu.Lock()
	c.repositories[key] = client
	c.mu.Unlock()
	return client, nil
}

// loginError converts the registry's error to a *StatusError.
func (r *repository) loginError(err error) error {
	refused, ok := errors.AsType[*registry.Error](err)
	if e, isURL := errors.AsType[*url.Error](err); !ok && isURL && r.plain {
		return &url.Error{Op: e.Op, URL: strings.Replace(e.URL, "https://", "http://", 1), Err: e.Err}
	}
	if !ok {
		return err
	}
	e := &StatusError{Method: http.MethodGet, Code: refused.StatusCode}
	if refused.Request != nil {
		e.Method, e.Address = refused.Request.Method, display(refused.Request.URL)
	}
	for _, d := range refused.Errors {
		e.Message = oneLine(e.Message + " " + d.String())
	}
	e.Message = e.Message[:min(len(e.Message), messageBytes)]
	return e
}

// withoutTLS uses plain http where the registry library tries https first and http second.
// A failure of the first attempt is returned for the second too.
type withoutTLS struct {
	*transport
	host   string
	failed *atomic.Pointer[error]
}

// RoundTrip sends one request.
func (t withoutTLS) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Host != t.host {
		return t.transport.RoundTrip(req)
	}
	if req.URL.Scheme == "http" {
		if err := t.failed.Load(); err != nil && req.URL.Path == "/v2/" { // the request of a login
			return nil, *err
		}
		return t.transport.RoundTrip(req)
	}
	req = req.Clone(req.Context())
	req.URL.Scheme = "http"
	resp, err := t.transport.RoundTrip(req)
	if err != nil {
		t.failed.Store(&err)
	}
	return resp, err
}

// open returns the job.open function of r's blobs.
func (r *repository) open(digest string) func(context.Context) (doer, *url.URL, error) {
	return func(ctx context.Context) (doer, *url.URL, error) {
		client, err := r.login(allowPlainHTTP(ctx, r.plain))
		if err != nil {
			return nil, nil, err
		}
		return plainDoer{client, r.plain}, r.url("blobs", digest), nil
	}
}

// get reads a manifest or index as served.
func (r *repository) get(ctx context.Context, identity string) (b []byte, mediaType string, err error) {
	ctx = allowPlainHTTP(ctx, r.plain)
	err = r.client.retry(ctx, r.address, func(ctx context.Context) (int64, error) {
		var err error
		b, mediaType, err = r.getOnce(ctx, identity)
		return 0, err
	})
	if err != nil {
		return nil, "", err
	}
	return b, mediaType, nil
}

func (r *repository) getOnce(ctx context.Context, identity string) ([]byte, string, error) {
	client, err := r.login(ctx)
	if err != nil {
		return nil, "", err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url("manifests", identity).String(), nil)
	if err != nil {
		return nil, "", err
	}
	req.Header.Set("Accept", strings.Join(documentTypes(), ","))
	resp, err := client.Do(req)
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, "", statusError(resp)
	}
	b, err := io.ReadAll(io.LimitReader(resp.Body, documentBytes+1))
	if err != nil {
		return nil, "", err
	}
	if len(b) > documentBytes {
		return nil, "", fmt.Errorf("%s has more than %d bytes, too many for a manifest", r.target(identity), documentBytes)
	}
	return b, resp.Header.Get("Content-Type"), nil
}
