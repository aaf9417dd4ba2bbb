package registry

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/mensylisir/kubexm/bundle/transfer"
)

// PlainHTTPError is why a request is not sent: it would go over plain HTTP to a
// registry that is spoken to over TLS. A registry that redirects there, or names
// such an address for tokens, would have the login sent in clear.
type PlainHTTPError struct{ Address string }

func (e *PlainHTTPError) Error() string {
	return fmt.Sprintf("refused to ask %s over plain http: the registry is spoken to over TLS", e.Address)
}

// maxRedirects is net/http's own limit, which a CheckRedirect has to keep itself.
const maxRedirects = 10

// client gives t's HTTP client, which keeps a login to the scheme, host and port
// that it is for: net/http passes the header on to other ports and to subdomains
// of the same host, over plain HTTP as well.
func (t Target) client() *http.Client {
	c := http.Client{}
	if t.Client != nil {
		c = *t.Client
	}
	if c.Transport == nil {
		c.Transport = transfer.Waits{}.Transport(nil)
	}
	c.Transport = &encrypted{base: c.Transport, plainHTTP: t.PlainHTTP}
	c.CheckRedirect = withoutLogin
	return &c
}

// encrypted sends nothing over plain HTTP unless that is allowed.
type encrypted struct {
	base      http.RoundTripper
	plainHTTP bool
}

// RoundTrip implements http.RoundTripper.
func (e *encrypted) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Scheme != "https" && !e.plainHTTP {
		return nil, &PlainHTTPError{Address: req.URL.Host}
	}
	return e.base.RoundTrip(req)
}

// withoutLogin follows a redirect. The login comes along only where scheme, host
// and port are those that were asked first.
func withoutLogin(req *http.Request, via []*http.Request) error {
	if len(via) >= maxRedirects {
		return errors.New("stopped after 10 redirects")
	}
	if first := via[0].URL; req.URL.Scheme != first.Scheme || req.URL.Host != first.Host {
		req.Header.Del("Authorization")
	}
	return nil
}
