package serve

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// The bounds of a connection.
const (
	headerTime  = 20 * time.Second
	idleTime    = 2 * time.Minute
	maxHeader   = 64 << 10        // bytes
	stoppingFor = 5 * time.Second // for answers that are under way
)

// Run serves on l until ctx ends, and then gives answers that are under way a
// little time to come to their end. It closes l.
func Run(ctx context.Context, l net.Listener, h http.Handler, log *slog.Logger) error {
	// HTTP/1 alone: there a blob that turns out wrong breaks the connection, and
	// no client takes what came for the whole.
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
		err = s.Close() // who takes longer is cut off
	}
	if served := <-ended; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}
