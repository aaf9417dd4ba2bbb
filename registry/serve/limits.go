package serve

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"time"
)

// The bounds of what is read at once, and with it of the memory that is used.
const (
	slots             = 32 // blobs
	perAddress        = 8  // of these, for clients of one address
	waitingPerAddress = 64 // further requests of one address; more are told to come later
)

// The bounds of one answer. A client that takes nothing is given up after stalled,
// and one that goes on slower than slowest once it has used up its grace.
const (
	stalled = 30 * time.Second
	grace   = 30 * time.Second
	slowest = 32 << 10 // bytes a second
)

// errBusy is why a request is told to come later.
var errBusy = errors.New("too many requests of this address")

// limits say who may read a blob now. Whoever asks for much holds up clients of the
// same address before those of others.
type limits struct {
	all chan struct{}

	mu sync.Mutex
	by map[string]*readers
}

// readers are the requests of one address.
type readers struct {
	slots chan struct{}
	known int // that read or wait
}

func newLimits() *limits {
	return &limits{all: make(chan struct{}, slots), by: map[string]*readers{}}
}

// enter waits until a blob may be read for an address, and gives what has to be
// called afterwards. Where too many wait already it is errBusy.
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

// addressOf gives what counts as one client: an IPv4 address, or the network that
// an IPv6 host chooses its addresses from.
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
