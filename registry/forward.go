package registry

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/url"

	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/credentials"
)

// Forward returns a reverse proxy for a registry. Requests are forwarded with their own
// credentials. X-Forwarded headers contain the address that the client uses, because the
// registry's responses contain upload addresses.
func Forward(t Target, log *slog.Logger) http.Handler {
	transport := t.Client.Transport
	if w, ok := transport.(*http.Transport); ok {
		w = w.Clone()
		w.DisableKeepAlives = true // a push on a connection that was closed while idle cannot be retried by a proxy
		transport = w
	}
	return &httputil.ReverseProxy{
		Transport: transport,
		ErrorLog:  slog.NewLogLogger(log.Handler(), slog.LevelError),
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = "https", t.Host
			r.Out.Host = r.In.Host
			r.Out.Header.Set("X-Forwarded-Proto", "http")
			r.Out.Header.Set("X-Forwarded-Host", r.In.Host)
		},
		ModifyResponse: func(r *http.Response) error {
			to, err := url.Parse(r.Header.Get("Location"))
			if err != nil || to.Host == "" {
				return nil //nolint:nilerr // no location, or an invalid one
			}
			to.Scheme, to.Host = "http", r.Request.Host // for registries that ignore X-Forwarded headers
			r.Header.Set("Location", to.String())
			return nil
		},
	}
}

// WriteLogin stores credentials in docker's credential store, or in file if it is set. forget
// restores the previous state.
func WriteLogin(ctx context.Context, file, address string, login auth.Credential) (forget func() error, err error) {
	var store credentials.Store
	if file != "" {
		store, err = credentials.NewFileStore(file)
	} else {
		store, err = credentials.NewStoreFromDocker(credentials.StoreOptions{AllowPlaintextPut: true})
	}
	if err != nil {
		return nil, fmt.Errorf("read docker's credentials: %w", err)
	}
	was, err := store.Get(ctx, address)
	if err != nil {
		return nil, fmt.Errorf("read docker's credentials: %w", err)
	}
	if err := store.Put(ctx, address, login); err != nil {
		return nil, fmt.Errorf("write docker's credentials: %w", err)
	}
	return func() error {
		ctx := context.WithoutCancel(ctx)
		if was != auth.EmptyCredential {
			return store.Put(ctx, address, was)
		}
		return store.Delete(ctx, address)
	}, nil
}
