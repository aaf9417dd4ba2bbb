package serve

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// The limits of a connection.
const (
	headerTime  = 20 * time.Second
	idleTime    = 2 * time.Minute
	maxHeader   = 64 << 10        // bytes
	stoppingFor = 5 * time.Second // for current responses
)

// Run serves on l until ctx ends, and then waits up to five seconds for current responses. It
// closes l.
func Run(ctx context.Context, l net.Listener, h http.Handler, log *slog.Logger) error {
	// Only HTTP/1: a damaged blob closes the connection, so that no client accepts an
	// incomplete response.
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	s := &http.Server{
		Handler: h, ReadHeaderTimeout: headerTime, IdleTimeout: idleTime, MaxHeaderBytes: maxHeader, Protocols: protocols,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stoppingFor)
	defer cancel()
	err := s.Shutdown(stopping)
	if errors.Is(err, context.DeadlineExceeded) {
		err = s.Close() // close the remaining connections
	}
	if served := <-ended; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}
