package registry

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/errcode"
)

// ErrTokensOnly means that a registry accepts only bearer tokens. Nodes send user and password
// with each request (basic authentication).
var ErrTokensOnly = errors.New("the registry accepts no basic authentication, only tokens")

// maxRefusal is the maximum number of bytes of an error response that are read.
const maxRefusal = 64 << 10

// CheckPull checks, with one request like a node's, whether a host is a registry and accepts the
// user. If the registry refuses the request, the error is an *errcode.ErrorResponse.
func CheckPull(ctx context.Context, t Target) error {
	q, err := t.request(ctx, http.MethodGet, "/v2/")
	if err != nil {
		return err
	}
	c := auth.Client{Client: t.client()}
	if t.Username == "" { // anonymous: a node gets an anonymous token if the registry requires one
		return answered(c.Do(q))
	}
	q.Header.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(t.Username+":"+t.Password)))
	r, err := t.client().Do(q)
	if err == nil && r.StatusCode == http.StatusUnauthorized && strings.HasPrefix(strings.ToLower(r.Header.Get("WWW-Authenticate")), "bearer") {
		r.Body.Close()
		return ErrTokensOnly
	}
	return answered(r, err)
}

// CheckPush checks whether the user may push to a repository: it starts an upload and cancels it,
// which leaves nothing in the registry.
func CheckPush(ctx context.Context, t Target, repository string) error {
	ctx = auth.WithScopes(ctx, auth.ScopeRepository(repository, auth.ActionPull, auth.ActionPush))
	q, err := t.request(ctx, http.MethodPost, "/v2/"+repository+"/blobs/uploads/")
	if err != nil {
		return err
	}
	c := auth.Client{Client: t.client(), Cache: auth.NewCache(), Credential: t.Credential}
	if t.Username != "" {
		c.Credential = auth.StaticCredential(t.Host, auth.Credential{Username: t.Username, Password: t.Password})
	}
	r, err := c.Do(q)
	if err := answered(r, err); err != nil {
		return err
	}
	at, err := q.URL.Parse(r.Header.Get("Location"))
	if err != nil || at.Host != q.URL.Host {
		return nil // the upload cannot be cancelled; the registry removes it after a while
	}
	stop, err := http.NewRequestWithContext(ctx, http.MethodDelete, at.String(), nil)
	if err != nil {
		return err
	}
	if r, err := c.Do(stop); err == nil { // registries without this remove uploads after a while
		r.Body.Close()
	}
	return nil
}

func (t Target) request(ctx context.Context, method, path string) (*http.Request, error) {
	at := url.URL{Scheme: "https", Host: t.Host, Path: path}
	if t.PlainHTTP {
		at.Scheme = "http"
	}
	q, err := http.NewRequestWithContext(ctx, method, at.String(), nil)
	if err == nil && t.UserAgent != "" {
		q.Header.Set("User-Agent", t.UserAgent)
	}
	return q, err
}

// answered returns an error for an error response, and closes the response.
func answered(r *http.Response, err error) error {
	if err != nil {
		return err
	}
	defer r.Body.Close()
	if r.StatusCode/100 == 2 {
		return nil
	}
	refusal := &errcode.ErrorResponse{Method: r.Request.Method, URL: r.Request.URL, StatusCode: r.StatusCode}
	var body struct{ Errors errcode.Errors }
	if text, err := io.ReadAll(io.LimitReader(r.Body, maxRefusal)); err == nil && json.Unmarshal(text, &body) == nil {
		refusal.Errors = body.Errors
	}
	return fmt.Errorf("the registry answers: %w", refusal)
}
