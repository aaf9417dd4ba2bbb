package drivers

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"
)

// client asks the API over connections of its own.
type client struct {
	base  string
	token string
	http  *http.Client
}

// refused is an answer that is no success.
type refused struct {
	Code    int    `json:"code"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

func (e *refused) Error() string { return fmt.Sprintf("%d %s: %s", e.Code, e.Reason, e.Message) }

// code gives an answer's status code, or 0 where there was no answer.
func code(err error) int {
	var e *refused
	if errors.As(err, &e) {
		return e.Code
	}
	return 0
}

// kept makes a client that keeps its connections, by HTTP/2, as client-go's do.
func (c *Config) kept() (*client, error) {
	return c.client(func(t *http.Transport) {
		t.ForceAttemptHTTP2 = true
		t.HTTP2 = &http.HTTP2Config{SendPingTimeout: c.Health.ReadIdle, PingTimeout: c.Health.Ping}
	})
}

// fresh makes a client with a new connection for each request.
func (c *Config) fresh() (*client, error) {
	return c.client(func(t *http.Transport) { t.DisableKeepAlives = true })
}

func (c *Config) client(change func(*http.Transport)) (*client, error) {
	u, err := url.Parse(c.Endpoint)
	if err != nil {
		return nil, fmt.Errorf("endpoint: %w", err)
	}
	conf := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: cmp.Or(c.ServerName, u.Hostname()), RootCAs: x509.NewCertPool()}
	if !conf.RootCAs.AppendCertsFromPEM(c.CA) {
		return nil, errors.New("the CA is no certificate in PEM")
	}
	if len(c.Certificate) > 0 {
		pair, err := tls.X509KeyPair(c.Certificate, c.Key)
		if err != nil {
			return nil, fmt.Errorf("client certificate: %w", err)
		}
		conf.Certificates = []tls.Certificate{pair}
	}
	// No proxy of the environment: what is measured is the way that Dial takes.
	t := &http.Transport{TLSClientConfig: conf, TLSHandshakeTimeout: 10 * time.Second, DialContext: c.dialAny()}
	change(t)
	return &client{base: c.Endpoint, token: c.Token, http: &http.Client{Transport: t}}, nil
}

// dialAny dials Addresses in turn until one accepts, beginning with another one each
// time. Without any it dials what it is asked for.
func (c *Config) dialAny() Dial {
	if len(c.Addresses) == 0 {
		return c.Dial
	}
	var turn atomic.Uint64
	return func(ctx context.Context, network, _ string) (net.Conn, error) {
		var all []error
		first := int(turn.Add(1) % uint64(len(c.Addresses))) //nolint:gosec // below the number of addresses
		for i := range c.Addresses {
			within, cancel := context.WithTimeout(ctx, tryTimeout)
			conn, err := c.Dial(within, network, c.Addresses[(first+i)%len(c.Addresses)])
			cancel()
			if err == nil {
				return conn, nil
			}
			if all = append(all, err); ctx.Err() != nil {
				break
			}
		}
		return nil, errors.Join(all...)
	}
}

// open sends a request and gives the answer, whose body the caller closes.
func (c *client) open(ctx context.Context, method, path, kind string, body any) (*http.Response, error) {
	var text io.Reader
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		text = bytes.NewReader(raw)
	}
	r, err := http.NewRequestWithContext(ctx, method, c.base+path, text)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", "application/json")
	r.Header.Set("User-Agent", "kubexm-lab-drivers")
	if body != nil {
		r.Header.Set("Content-Type", kind)
	}
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	answer, err := c.http.Do(r)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode < 300 {
		return answer, nil
	}
	defer answer.Body.Close()
	refusal := &refused{}
	raw, err := io.ReadAll(io.LimitReader(answer.Body, 64<<10))
	if err != nil || json.Unmarshal(raw, refusal) != nil {
		refusal.Message = string(raw)
	}
	refusal.Code = answer.StatusCode
	return nil, refusal
}

const (
	plainJSON  = "application/json"
	mergePatch = "application/merge-patch+json"
)

// ask sends a request and decodes the answer, which has to be complete.
func (c *client) ask(ctx context.Context, method, path, kind string, body, into any) error {
	answer, err := c.open(ctx, method, path, kind, body)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	raw, err := io.ReadAll(answer.Body)
	if err != nil || into == nil {
		return err
	}
	return json.Unmarshal(raw, into)
}

// close closes the connections that nobody uses.
func (c *client) close() { c.http.CloseIdleConnections() }
