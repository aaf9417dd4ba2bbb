package fetch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"go.yaml.in/yaml/v3"
)

// login is the name and password for a chart repository.
type login struct{ user, password string }

// helmRepository is one of the repositories that `helm repo add` stored.
type helmRepository struct {
	URL      string `yaml:"url"`
	Username string `yaml:"username"`
	Password string `yaml:"password"`
}

// helmRepositories reads Helm's list; it is empty if the file does not exist.
func helmRepositories(file string) ([]helmRepository, error) {
	if file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the logins of chart repositories: %w", err)
	}
	var list struct {
		Repositories []helmRepository `yaml:"repositories"`
	}
	if yaml.Unmarshal(text, &list) != nil { // its error may quote a password
		return nil, fmt.Errorf("read the logins of chart repositories: %s is not a list of repositories as `helm repo add` writes it", file)
	}
	return list.Repositories, nil
}

// loggedIn returns the client for charts at u. It sends the login only to the scheme, host
// and port of u, and not to targets of redirects.
func (c *Client) loggedIn(ctx context.Context, u *url.URL) (*http.Client, error) {
	l, err := c.loginFor(ctx, u)
	if err != nil || l == (login{}) {
		return c.http, err
	}
	t := &basicLogin{login: l, scheme: u.Scheme, host: u.Host, base: c.base}
	return &http.Client{Transport: t, CheckRedirect: checkRedirect}, nil
}

// loginFor searches Helm's list, then the registry credentials for the host.
func (c *Client) loginFor(ctx context.Context, u *url.URL) (login, error) {
	if l, ok := listed(c.helm, u); ok {
		return l, nil
	}
	a, err := authn.Resolve(ctx, c.keys, place{u})
	if err != nil {
		return login{}, fmt.Errorf("credentials for %s: %w", u.Host, err)
	}
	have, err := authn.Authorization(ctx, a)
	if err != nil {
		return login{}, fmt.Errorf("credentials for %s: %w", u.Host, err)
	}
	return login{have.Username, have.Password}, nil
}

// listed returns u's login in Helm's list: that of the innermost repository that contains
// u, or that of the only repository on u's host.
func listed(all []helmRepository, u *url.URL) (login, bool) {
	var on []login // of the same host
	var best login
	longest := -1
	for _, r := range all {
		at, err := url.Parse(r.URL)
		if err != nil || at.Scheme != u.Scheme || at.Host != u.Host || r.Username == "" {
			continue
		}
		l := login{r.Username, r.Password}
		on = append(on, l)
		folder := strings.TrimSuffix(at.Path, "/") + "/"
		if strings.HasPrefix(u.Path, folder) && len(folder) > longest {
			best, longest = l, len(folder)
		}
	}
	if longest < 0 && len(on) == 1 {
		return on[0], true
	}
	return best, longest >= 0
}

// place is the location of a file as the key of registry credentials: host, or host/path.
type place struct{ *url.URL }

func (p place) String() string {
	return cmp.Or(strings.TrimSuffix(p.Host+path.Dir(p.Path), "/"), p.Host)
}

// RegistryStr returns the host with its port.
func (p place) RegistryStr() string { return p.Host }

// basicLogin adds a login to requests for one scheme and host. It does not use the headers
// of the original request, because net/http copies those to other ports and subdomains on
// redirects.
type basicLogin struct {
	login
	scheme, host string
	base         http.RoundTripper
}

// RoundTrip sends one request.
func (t *basicLogin) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Scheme == t.scheme && req.URL.Host == t.host {
		req = req.Clone(req.Context())
		req.SetBasicAuth(t.user, t.password)
	}
	return t.base.RoundTrip(req)
}

// hasLogin reports whether an address contains a user or password, which would get into the
// lock and the bundle.
func hasLogin(address string) bool {
	_, rest, _ := strings.Cut(address, "://")
	host, _, _ := strings.Cut(rest, "/")
	return strings.Contains(host, "@")
}
