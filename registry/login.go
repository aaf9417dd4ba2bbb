package registry

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/mensylisir/kubexm/bundle/transfer"
)

// PlainHTTPError is the error of a request over plain HTTP for a registry that uses TLS. The
// request is not sent. A registry that redirects to plain HTTP, or whose token server uses it,
// would otherwise get the credentials in clear text.
type PlainHTTPError struct{ Address string }

func (e *PlainHTTPError) Error() string {
	return fmt.Sprintf("refused a request to %s over plain http: the registry uses TLS", e.Address)
}

// maxRedirects is the limit of net/http, which a CheckRedirect function must implement itself.
const maxRedirects = 10

// client returns t's HTTP client. It sends credentials only to the scheme, host and port that
// they are for. net/http would also send them to other ports and to subdomains of the same host,
// even over plain HTTP.
func (t Target) client() *http.Client {
	c := http.Client{}
	if t.Client != nil {
		c = *t.Client
	}
	if c.Transport == nil {
		c.Transport = transfer.Timeouts{}.Transport(nil)
	}
	c.Transport = &encrypted{base: c.Transport, plainHTTP: t.PlainHTTP}
	c.CheckRedirect = withoutLogin
	return &c
}

// encrypted refuses requests over plain HTTP unless plainHTTP is set.
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

// withoutLogin follows a redirect. It removes the credentials unless scheme, host and port are
// those of the first request.
func withoutLogin(req *http.Request, via []*http.Request) error {
	if len(via) >= maxRedirects {
		return errors.New("stopped after 10 redirects")
	}
	if first := via[0].URL; req.URL.Scheme != first.Scheme || req.URL.Host != first.Host {
		req.Header.Del("Authorization")
	}
	return nil
}
