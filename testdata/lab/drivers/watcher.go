package drivers

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// watcher keeps a list and a watch of the writer's ConfigMaps as client-go's reflector
// does (tools/cache/reflector.go and rest/request.go of v0.37.0): same requests, same
// reactions to errors, same waits. It differs in one thing: lists end after a minute.
type watcher struct {
	client *client
	book   *book
	of     func(*Phase) *Watch // what this watch saw
	arrive func(n int, at time.Time)
	up     func() // called whenever a stream begins
	lasts  time.Duration
	delays delays

	version string    // of the last event
	expired bool      // the server no longer has what came after version
	retries int       // of the request for a stream, in a row
	broke   time.Time // of the stream that is not replaced yet
}

// lasts is how long a reflector asks for a stream at least; at most twice as long.
const lasts = 5 * time.Minute

// next is what a reflector does when a stream has ended.
type next int

const (
	relist  next = iota // after a wait, list and watch
	rewatch             // watch on from the last version
	later               // the same, after a wait
	soon                // the same, after a second
)

// run lists and watches until the context ends.
func (w *watcher) run(ctx context.Context) {
	for {
		if w.list(ctx) == nil {
			for what := rewatch; what != relist && ctx.Err() == nil; {
				if what = w.stream(ctx); what == later {
					pause(ctx, w.delays.next(time.Now()))
				} else if what == soon {
					pause(ctx, time.Second)
				}
			}
		}
		if !pause(ctx, w.delays.next(time.Now())) {
			break
		}
	}
	if !w.broke.IsZero() {
		w.book.span(w.broke, time.Now(), w.back)
	}
}

func (w *watcher) back(p *Phase, took time.Duration) {
	of := w.of(p)
	of.Back = max(of.Back, took)
}

// list takes what there is, not older than what was seen.
func (w *watcher) list(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	version := w.version
	if version == "" {
		version = "0"
	}
	if w.expired {
		version = ""
	}
	var all struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
		Items []configMap `json:"items"`
	}
	err := w.client.ask(ctx, http.MethodGet, configMaps+"?"+ours+"&resourceVersion="+version, "", nil, &all)
	if code(err) == http.StatusGone && !w.expired {
		w.expired = true
		return w.list(ctx)
	}
	if err != nil {
		return err
	}
	w.version, w.expired = all.Metadata.ResourceVersion, false
	now := time.Now()
	for _, m := range all.Items {
		m.writes(func(n int) { w.arrive(n, now) })
	}
	return nil
}

// stream watches until the stream ends, and says how to go on.
func (w *watcher) stream(ctx context.Context) next {
	long := w.lasts + time.Duration(rand.Float64()*float64(w.lasts)) //nolint:gosec // no secret
	query := url.Values{"watch": {"true"}, "allowWatchBookmarks": {"true"}, "resourceVersion": {w.version}, "timeoutSeconds": {strconv.Itoa(int(long.Seconds()))}}
	ctx, cancel := context.WithTimeout(ctx, long+askTimeout) // a server that forgets it
	defer cancel()
	began := time.Now()
	answer, err := w.client.open(ctx, http.MethodGet, configMaps+"?"+ours+"&"+query.Encode(), "", nil)
	if err != nil {
		return w.refused(err)
	}
	defer answer.Body.Close()
	w.retries = 0
	w.begins(time.Now())
	events, err := w.read(answer.Body)
	now := time.Now()
	took := now.Sub(began)
	if ctx.Err() == nil && took < long-time.Second {
		w.breaks(now)
	}
	switch {
	case code(err) == http.StatusTooManyRequests:
		return later
	case !closed(err), took < time.Second && events == 0:
		return relist
	}
	return rewatch
}

// refused says how to go on where no stream began. A break lasts until one does.
func (w *watcher) refused(err error) next {
	switch {
	case errors.Is(err, syscall.ECONNREFUSED), code(err) == http.StatusTooManyRequests:
		return later
	case code(err) == 0 && closed(err) && w.retries < 10:
		w.retries++
		return soon
	}
	w.retries = 0
	return relist
}

func (w *watcher) begins(at time.Time) {
	if !w.broke.IsZero() {
		w.book.span(w.broke, at, w.back)
		w.broke = time.Time{}
	}
	w.up()
}

func (w *watcher) breaks(at time.Time) {
	w.broke = at
	w.book.note(at, func(p *Phase) { w.of(p).Breaks++ })
}

// closed tells errors by which a stream has merely ended from those that a reflector
// takes for something unexpected.
func closed(err error) bool {
	var network net.Error
	return err == nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) ||
		errors.Is(err, net.ErrClosed) || errors.As(err, &network) && network.Timeout() ||
		strings.Contains(err.Error(), "http2: server sent GOAWAY and closed the connection")
}

// delays are the waits of a reflector: each twice as long as the one before, and as much
// again by chance; from the beginning after two minutes without any.
type delays struct {
	wait time.Duration
	last time.Time
}

const (
	firstDelay   = 800 * time.Millisecond
	longestDelay = 30 * time.Second
	delaysReset  = 2 * time.Minute
)

func (d *delays) next(now time.Time) time.Duration {
	if now.Sub(d.last) > delaysReset {
		d.wait = firstDelay
	}
	wait := d.wait
	d.last, d.wait = now, min(2*d.wait, longestDelay)
	return wait + time.Duration(rand.Float64()*float64(wait)) //nolint:gosec // no secret
}
