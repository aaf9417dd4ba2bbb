package registry_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/mensylisir/kubexm/registry"
)

// heard notes the credentials that reach a server.
type heard struct {
	mu    sync.Mutex
	login []string
}

func (h *heard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if a := r.Header.Get("Authorization"); a != "" {
		h.login = append(h.login, r.Method+" "+r.URL.Path+" "+a)
	}
	w.WriteHeader(http.StatusOK)
}

func (h *heard) all() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Join(h.login, "\n")
}

// TestPasswordStaysWithItsRegistry: a registry that redirects, or asks for a token
// elsewhere, gets nobody's password to be sent in clear or to another place. All
// servers have the same host name, as net/http would pass a login on to them.
func TestPasswordStaysWithItsRegistry(t *testing.T) {
	b := carried(t)
	calls := map[string]func(context.Context, registry.Target) error{
		"AskPull": registry.CheckPull,
		"AskPush": func(ctx context.Context, t registry.Target) error { return registry.CheckPush(ctx, t, "site/x") },
		"Compare": func(ctx context.Context, t registry.Target) error {
			_, err := registry.Compare(ctx, t, b, b.Lock.Images[:1], 1)
			return err
		},
		"Survey": func(ctx context.Context, t registry.Target) error {
			_, err := registry.Survey(ctx, t, b.Lock.Images[:1], 1)
			return err
		},
		"Open": func(ctx context.Context, t registry.Target) error {
			rc, err := registry.Open(ctx, t, "site/x", b.Lock.Images[0].Digest)
			if err == nil {
				_ = rc.Close()
			}
			return err
		},
	}
	for way, c := range map[string]struct {
		to     func(http.Handler) *httptest.Server
		answer func(w http.ResponseWriter, r *http.Request, other string)
		reason string // of the refusal; "" is none
	}{
		"redirect to plain http": {httptest.NewServer, func(w http.ResponseWriter, r *http.Request, other string) {
			http.Redirect(w, r, other+r.URL.Path, http.StatusTemporaryRedirect)
		}, "plain http"},
		"redirect to another port": {httptest.NewTLSServer, func(w http.ResponseWriter, r *http.Request, other string) {
			http.Redirect(w, r, other+r.URL.Path, http.StatusTemporaryRedirect)
		}, ""},
		"token from plain http": {httptest.NewServer, func(w http.ResponseWriter, _ *http.Request, other string) {
			w.Header().Set("WWW-Authenticate", `Bearer realm="`+other+`/token",service="x"`)
			w.WriteHeader(http.StatusUnauthorized)
		}, "http"},
	} {
		for name, call := range calls {
			t.Run(way+"/"+name, func(t *testing.T) {
				other := &heard{}
				there := c.to(other)
				t.Cleanup(there.Close)
				here := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if _, _, ok := r.BasicAuth(); !ok && !strings.Contains(way, "token") {
						w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
						w.WriteHeader(http.StatusUnauthorized)
						return
					}
					c.answer(w, r, there.URL)
				}))
				t.Cleanup(here.Close)
				target := registry.Target{Mapper: registry.Mapper{Host: strings.TrimPrefix(here.URL, "https://"), Namespace: "site"},
					Client: here.Client(), Username: "robot", Password: "canary"}
				err := call(t.Context(), target)
				if got := other.all(); got != "" {
					t.Errorf("the login went to %s:\n%s", there.URL, got)
				}
				if tokens := errors.Is(err, registry.ErrTokensOnly); !tokens && c.reason != "" && (err == nil || !strings.Contains(err.Error(), c.reason)) {
					t.Errorf("the refusal does not say why: %v", err)
				}
			})
		}
	}
}
