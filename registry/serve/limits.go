package serve

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"time"
)

// The limits of concurrent reads, and thereby of memory usage.
const (
	slots             = 32 // blobs
	perAddress        = 8  // of these, for clients with one address
	waitingPerAddress = 64 // waiting requests of one address; more get status 429
)

// The limits of one response. The connection is closed if a client reads nothing for stalled,
// or if it reads slower than slowest after the time grace.
const (
	stalled = 30 * time.Second
	grace   = 30 * time.Second
	slowest = 32 << 10 // bytes a second
)

// errBusy is the reason for status 429.
var errBusy = errors.New("too many requests from this address")

// limits limit concurrent reads of blobs. Many requests from one address delay each other
// before they delay clients with other addresses.
type limits struct {
	all chan struct{}

	mu sync.Mutex
	by map[string]*readers
}

// readers are the requests of one address.
type readers struct {
	slots chan struct{}
	known int // requests that read or wait
}

func newLimits() *limits {
	return &limits{all: make(chan struct{}, slots), by: map[string]*readers{}}
}

// enter waits until a blob may be read for an address. The caller must call leave afterwards.
// enter returns errBusy if too many requests are waiting.
func (l *limits) enter(ctx context.Context, address string) (leave func(), err error) {
	l.mu.Lock()
	r := l.by[address]
	if r == nil {
		r = &readers{slots: make(chan struct{}, perAddress)}
		l.by[address] = r
	}
	if r.known >= perAddress+waitingPerAddress {
		l.mu.Unlock()
		return nil, errBusy
	}
	r.known++
	l.mu.Unlock()
	forget := func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if r.known--; r.known == 0 {
			delete(l.by, address)
		}
	}
	for i, c := range []chan struct{}{r.slots, l.all} {
		select {
		case c <- struct{}{}:
		case <-ctx.Done():
			if i > 0 {
				<-r.slots
			}
			forget()
			return nil, ctx.Err()
		}
	}
	return func() {
		<-l.all
		<-r.slots
		forget()
	}, nil
}

// addressOf returns the key of a client: its IPv4 address, or the /64 network of its IPv6
// address, because an IPv6 host can choose addresses in its network.
func addressOf(remote string) string {
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return remote
	}
	ip := at.Addr().Unmap().WithZone("")
	if ip.Is4() {
		return ip.String()
	}
	return netip.PrefixFrom(ip, 64).Masked().String()
}
