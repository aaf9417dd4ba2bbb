package drivers

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"
)

// prober asks the Service, with a new connection for each request.
type prober struct {
	way     string
	targets []string // host:port, asked in turn
	timeout time.Duration
	http    *http.Client
}

func newProber(way string, dial Dial, targets []string, timeout time.Duration) *prober {
	t := &http.Transport{DialContext: dial, DisableKeepAlives: true}
	return &prober{way: way, targets: targets, timeout: timeout, http: &http.Client{Transport: t}}
}

// probe asks one target.
func (p *prober) probe(ctx context.Context, n int) error {
	target := p.targets[n%len(p.targets)]
	if err := p.ask(ctx, target); err != nil {
		return &unreached{target: target, err: err}
	}
	return nil
}

// unreached is an error that names its target.
type unreached struct {
	target string
	err    error
}

func (e *unreached) Error() string { return e.target + ": " + e.err.Error() }
func (e *unreached) Unwrap() error { return e.err }

func (p *prober) ask(ctx context.Context, target string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.timeout) // a stop is no failed request
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+target, nil)
	if err != nil {
		return err
	}
	answer, err := p.http.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, 64<<10))
	switch {
	case err != nil:
		return err
	case answer.StatusCode != http.StatusOK || len(text) == 0:
		return &refused{Code: answer.StatusCode, Reason: fmt.Sprintf("with %d bytes", len(text))}
	}
	return nil
}
