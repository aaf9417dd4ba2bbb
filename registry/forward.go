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

// Forward passes requests on to a registry as they come, with their own login. The
// registry is told which address its client speaks to, since it answers with
// addresses for uploads.
func Forward(t Target, log *slog.Logger) http.Handler {
	way := t.Client.Transport
	if w, ok := way.(*http.Transport); ok {
		w = w.Clone()
		w.DisableKeepAlives = true // a push whose connection ends while it is idle cannot be sent again from here
		way = w
	}
	return &httputil.ReverseProxy{
		Transport: way,
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
				return nil //nolint:nilerr // none, or none that anybody can follow
			}
			to.Scheme, to.Host = "http", r.Request.Host // where it does not go by what it is told
			r.Header.Set("Location", to.String())
			return nil
		},
	}
}

// WriteLogin puts a login where docker keeps its own, and gives what puts back
// what was there.
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
