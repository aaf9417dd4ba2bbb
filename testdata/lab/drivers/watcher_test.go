package drivers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

func (f *fakeAPI) begun() (streams, relists int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.streams, f.relists
}

// TestWatchIsClosed: a watch that ends, in one way or the other, is a break; it goes on
// from where it was, and nothing is missed.
func TestWatchIsClosed(t *testing.T) {
	t.Parallel()
	for name, abruptly := range map[string]bool{"by the server": false, "by the network": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFakeAPI(t)
			c := f.config(f.serve(t, ""))
			c.Writes = 50
			d := started(t, c)
			d.passes(t, 20)
			eventually(t, "the watch has shown something", func() bool { return d.seen() > 0 })
			streams, relists := f.begun()
			d.Mark("closes")
			f.cut(abruptly)
			eventually(t, "the watch is back", func() bool { now, _ := f.begun(); return now > streams })
			d.passes(t, 20)
			r, p := stopped(t, d, "closes")
			if p.Watch.Breaks != 1 || p.Watch.Back <= 0 || p.Watch.Missed > 0 || p.Watch.Events == 0 {
				t.Errorf("%+v", p.Watch)
			}
			if _, now := f.begun(); (now > relists) != abruptly { // a reflector takes a stream's error for something unexpected
				t.Errorf("%d lists, before %d", now, relists)
			}
			if err := r.Check("closes", Limit{Gap: time.Minute, Watch: time.Nanosecond}); err == nil || !strings.Contains(err.Error(), "back after a break") {
				t.Errorf("the check says %v", err)
			}
		})
	}
}

// seen is the number of events.
func (d *Drivers) seen() (n int) {
	d.ledger.mu.Lock()
	defer d.ledger.mu.Unlock()
	return len(d.ledger.arrived)
}

// TestWatchHasExpired: a server that no longer has what came after the last version is
// asked for a list, and what that has has arrived.
func TestWatchHasExpired(t *testing.T) {
	t.Parallel()
	f := newFakeAPI(t)
	c := f.config(f.serve(t, ""))
	c.Writes = 50
	d := started(t, c)
	d.passes(t, 10)
	_, relists := f.begun()
	d.Mark("expires")
	f.with(func() {
		f.oldest = f.version + 1
		f.events = nil
		f.hide = func(int) bool { return true } // the list alone has them
	})
	f.cut(false)
	d.passes(t, 20)
	eventually(t, "it lists", func() bool { _, now := f.begun(); return now > relists })
	f.with(func() { f.hide = nil })
	d.passes(t, 10)
	_, p := stopped(t, d, "expires")
	if p.Watch.Breaks < 2 || p.Watch.Missed > 0 || p.Watch.Silence <= 0 {
		t.Errorf("%+v", p.Watch)
	}
}

// TestWatchIsSilent: a stream that lives and shows nothing is no break; what it never
// shows is missed.
func TestWatchIsSilent(t *testing.T) {
	t.Parallel()
	f := newFakeAPI(t)
	c := f.config(f.serve(t, ""))
	c.Writes = 50
	d := started(t, c)
	d.config.Settle = 500 * time.Millisecond
	d.passes(t, 10)
	d.Mark("silent")
	f.with(func() { f.hide = func(n int) bool { return true } })
	d.passes(t, 20)
	time.Sleep(300 * time.Millisecond)
	d.stopTraffic() // without a further write no ConfigMap shows those before it
	r, p := stopped(t, d, "silent")
	if p.Watch.Missed == 0 || p.Watch.Breaks > 0 || p.Watch.Silence < 800*time.Millisecond || p.Lost > 0 {
		t.Errorf("%+v", p.Watch)
	}
	err := r.Check("silent", Limit{Gap: time.Minute, Watch: time.Minute})
	if err == nil || !strings.Contains(err.Error(), "missed events") {
		t.Errorf("the check says %v", err)
	}
	if err := r.Check("silent", Limit{Gap: time.Minute, Watch: time.Millisecond}); err == nil || !strings.Contains(err.Error(), "latest event") {
		t.Errorf("the check says %v", err)
	}
}

// TestServerIsShutDown: of two servers without a balancer one ends gracefully, by GOAWAY.
// The other gets what was asked of it, on connections old and new.
func TestServerIsShutDown(t *testing.T) {
	t.Parallel()
	f := newFakeAPI(t)
	one, two := f.serve(t, ""), f.serve(t, "")
	c := f.config(one)
	c.Writes = 50
	c.Addresses = []string{one.Listener.Addr().String(), two.Listener.Addr().String()}
	d := started(t, c)
	d.passes(t, 20)
	d.Mark("shut down")
	graceful := true
	for _, s := range []*httptest.Server{one, two} { // the watch is with either: each ends, and the first is back before
		if s == two {
			one = f.serve(t, one.Listener.Addr().String())
		}
		graceful = f.shutDown(t, s) && graceful
		d.passes(t, 20)
	}
	eventually(t, "the watch has caught up", func() bool { return d.ledger.missing() < 5 })
	_, p := stopped(t, d, "shut down")
	if p.Watch.Breaks == 0 || p.Watch.Missed > 0 || graceful && p.Ways[Kept].Failed > 0 {
		t.Errorf("%+v, %+v", p.Watch, p.Ways[Kept])
	}
	if n := p.Ways[New]; n.Requests-n.Failed < 5 { // a listener resets those that it has not accepted yet: on a busy machine many
		t.Errorf("%+v", n)
	}
}

// shutDown ends a server gracefully, and reports whether it could. A connection that it
// accepted at that moment is not told, by net/http, that the server ends.
func (f *fakeAPI) shutDown(t *testing.T, s *httptest.Server) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	err := s.Config.Shutdown(ctx)
	if err != nil {
		t.Log(err)
		s.CloseClientConnections()
	}
	return err == nil
}

// powerless loses, from a moment on, everything on connections that there were before,
// without a word: as where a balancer has lost its power.
type powerless struct {
	mu    sync.Mutex
	conns []*deadConn
}

type deadConn struct {
	net.Conn
	dead atomic.Bool
	once sync.Once
	gone chan struct{}
}

func (p *powerless) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	c := &deadConn{Conn: conn, gone: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns = append(p.conns, c)
	return c, nil
}

func (p *powerless) off() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		c.dead.Store(true)
	}
}

func (c *deadConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.dead.Load() {
		<-c.gone
		return 0, net.ErrClosed
	}
	return n, err
}

func (c *deadConn) Write(b []byte) (int, error) {
	if c.dead.Load() {
		return len(b), nil
	}
	return c.Conn.Write(b)
}

func (c *deadConn) Close() error {
	c.once.Do(func() { close(c.gone) })
	return c.Conn.Close()
}

// TestHealth: a connection that is dead without a word is found by pings. The client of
// the shorter times has its watch back; the stock one still waits.
func TestHealth(t *testing.T) {
	t.Parallel()
	for name, tuned := range map[string]bool{"stock": false, "tuned": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFakeAPI(t)
			c := f.config(f.serve(t, ""))
			line := &powerless{}
			c.Writes, c.Dial, c.WriteTimeout, c.ProbeTimeout = 50, line.dial, 2*time.Second, 2*time.Second
			if tuned {
				c.Health, c.StockWatch = Health{ReadIdle: 300 * time.Millisecond, Ping: time.Second}, true
			}
			d := started(t, c)
			if !tuned {
				d.config.Settle = time.Second
			}
			d.passes(t, 20)
			streams, _ := f.begun()
			d.Mark("no power")
			line.off()
			off := time.Now()
			if tuned {
				eventually(t, "the watch is back", func() bool { now, _ := f.begun(); return now > streams })
				d.succeeds(t, New)
				if took, back := d.StockBack(t.Context(), off, time.Second); back || took < time.Second {
					t.Errorf("beside it the stock client's watch is back after %s: %v", took, back)
				}
			} else {
				time.Sleep(2 * time.Second)
			}
			d.succeeds(t, New) // whatever becomes of those that were under way
			p := d.powered(t)
			if tuned && (p.Stock.Breaks > 0 || p.Stock.Missed == 0 || p.Stock.Silence < time.Second) {
				t.Errorf("the stock client's: %+v", p.Stock)
			}
			if tuned && (p.Watch.Breaks == 0 || p.Watch.Back <= 0 || p.Watch.Missed > 0 || p.Watch.Silence < 100*time.Millisecond) {
				t.Errorf("%+v", p.Watch)
			}
			if !tuned && (p.Watch.Breaks > 0 || p.Watch.Missed == 0 || p.Watch.Silence < time.Second) {
				t.Errorf("%+v", p.Watch)
			}
		})
	}
}

// succeeds waits for requests of a way that are answered.
func (d *Drivers) succeeds(t *testing.T, way string) {
	t.Helper()
	good := func() (n int) {
		d.book.note(time.Now(), func(p *Phase) { n = p.Ways[way].Requests - p.Ways[way].Failed })
		return n
	}
	least := good() + 5
	eventually(t, way, func() bool { return good() >= least })
}

// powered stops drivers whose administrator's connection is as dead as the others.
func (d *Drivers) powered(t *testing.T) *Phase {
	t.Helper()
	d.admin.close()
	fresh, err := d.config.fresh()
	if err != nil {
		t.Fatal(err)
	}
	d.admin = fresh
	_, p := stopped(t, d, "no power")
	return p
}

// TestReactions holds the watcher's reactions to refused requests against a reflector's.
func TestReactions(t *testing.T) {
	for _, c := range []struct {
		err  error
		want next
	}{
		{&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, later},
		{&refused{Code: 429}, later},
		{&refused{Code: 410}, relist},
		{&refused{Code: 500}, relist},
		{&refused{Code: 401}, relist},
		{fmt.Errorf("read: %w", syscall.ECONNRESET), soon},
		{context.DeadlineExceeded, soon},
		{errors.New("http2: client connection lost"), relist},
	} {
		if got := (&watcher{}).refused(c.err); got != c.want {
			t.Errorf("%v: %d, want %d", c.err, got, c.want)
		}
	}
	w := &watcher{}
	for range 10 {
		w.refused(syscall.ECONNRESET)
	}
	if got := w.refused(syscall.ECONNRESET); got != relist {
		t.Errorf("at the eleventh time: %d", got)
	}
}

func TestDelays(t *testing.T) {
	var d delays
	now := time.Now()
	for _, least := range []time.Duration{800, 1600, 3200, 6400, 12800, 25600, 30000, 30000} {
		least *= time.Millisecond
		if got := d.next(now); got < least || got > 2*least {
			t.Errorf("%s, want %s to %s", got, least, 2*least)
		}
		now = now.Add(time.Minute)
	}
	if got := d.next(now.Add(2 * time.Minute)); got >= 2*firstDelay {
		t.Errorf("after a rest: %s", got)
	}
}
