package registry

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"syscall"
	"time"

	"oras.land/oras-go/v2/registry/remote/errcode"
	"oras.land/oras-go/v2/registry/remote/retry"
)

const (
	tries      = 6
	firstPause = 250 * time.Millisecond // doubled after each try
)

// patience is the client's retry policy, except that 501 Not Implemented is final.
func patience() retry.Policy {
	p := retry.GenericPolicy{Retryable: func(resp *http.Response, err error) (bool, error) {
		if resp != nil && resp.StatusCode == http.StatusNotImplemented {
			return false, nil
		}
		return retry.DefaultPredicate(resp, err)
	}, Backoff: retry.DefaultBackoff, MinWait: 200 * time.Millisecond, MaxWait: 3 * time.Second, MaxRetry: 5}
	return &p
}

// retrying calls send until it succeeds, fails permanently, or has failed tries times. The
// client itself cannot retry a request whose body was read: send opens the blob again.
func retrying(ctx context.Context, send func() error) error {
	for n := 0; ; n++ {
		err := send()
		if err == nil || ctx.Err() != nil || n+1 == tries || !temporary(err) {
			return err
		}
		pause := firstPause << n
		t := time.NewTimer(pause/2 + rand.N(pause)) //nolint:gosec // it spreads load, no secret depends on it
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return ctx.Err()
		}
	}
}

// temporary reports whether a retry may succeed: the registry is busy, the connection broke, or
// the registry does not know an upload that it started.
func temporary(err error) bool {
	var r *errcode.ErrorResponse
	if errors.As(err, &r) {
		switch r.StatusCode {
		case http.StatusRequestTimeout, http.StatusTooManyRequests:
			return true
		case http.StatusNotFound:
			return r.Method == http.MethodPut || r.Method == http.MethodPatch
		case http.StatusNotImplemented:
			return false
		}
		return r.StatusCode >= 500
	}
	var op *net.OpError
	if errors.As(err, &op) {
		return true
	}
	for _, e := range []error{io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, syscall.ECONNRESET, syscall.EPIPE} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
