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

	"github.com/mensylisir/kubexm/bundle"
)

// ErrTokensOnly is what a registry is refused for that takes a user and a
// password only in exchange for a token: nodes send them with each request.
var ErrTokensOnly = errors.New("it takes no user and password with a request, only tokens")

// maxRefusal is the most that is read of a refusal, in bytes.
const maxRefusal = 64 << 10

// AskPull asks a registry as a node does, once: whether it is one, and takes the
// user. An answer that is a refusal is an *errcode.ErrorResponse.
func AskPull(ctx context.Context, t Target) error {
	q, err := t.request(ctx, http.MethodGet, "/v2/")
	if err != nil {
		return err
	}
	c := auth.Client{Client: t.client()}
	if t.Username == "" { // nobody is sent along: a node gets an anonymous token where one is asked for
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

// AskPush asks a registry whether the user may send to a repository: it begins an
// upload and gives it up. Nothing is left of that.
func AskPush(ctx context.Context, t Target, repository string) error {
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
		return nil // it goes by itself
	}
	stop, err := http.NewRequestWithContext(ctx, http.MethodDelete, at.String(), nil)
	if err != nil {
		return err
	}
	if r, err := c.Do(stop); err == nil { // a registry that cannot do that forgets uploads in time
		r.Body.Close()
	}
	return nil
}

func (t Target) client() *http.Client {
	if t.Client == nil {
		return &http.Client{Transport: bundle.Waits{}.Transport(nil)}
	}
	return t.Client
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

// answered gives the refusal that an answer is, if it is one, and closes it.
func answered(r *http.Response, err error) error {
	if err != nil {
		return err
	}
	defer r.Body.Close()
	if r.StatusCode/100 == 2 {
		return nil
	}
	refusal := &errcode.ErrorResponse{Method: r.Request.Method, URL: r.Request.URL, StatusCode: r.StatusCode}
	var said struct{ Errors errcode.Errors }
	if text, err := io.ReadAll(io.LimitReader(r.Body, maxRefusal)); err == nil && json.Unmarshal(text, &said) == nil {
		refusal.Errors = said.Errors
	}
	return fmt.Errorf("it answers: %w", refusal)
}
