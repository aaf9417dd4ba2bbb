package drivers

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Names of what is written: ConfigMaps of so many writes each, so that none grows large
// and each write can be read back.
const perMap = 50

func mapName(n int) string { return fmt.Sprintf("w-%04d", n/perMap) }
func keyName(n int) string { return fmt.Sprintf("n%06d", n) }

// configMap is what drivers read of one.
type configMap struct {
	Metadata struct {
		Name            string `json:"name"`
		ResourceVersion string `json:"resourceVersion"`
	} `json:"metadata"`
	Data map[string]string `json:"data"`
}

// writes lists the numbers of the writes that a ConfigMap has.
func (m *configMap) writes(tell func(n int)) {
	for key := range m.Data {
		digits, ok := strings.CutPrefix(key, "n")
		if n, err := strconv.Atoi(digits); ok && err == nil {
			tell(n)
		}
	}
}

func (m *configMap) version() (uint64, error) {
	v, err := strconv.ParseUint(m.Metadata.ResourceVersion, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("ConfigMap %s: resource version %q", m.Metadata.Name, m.Metadata.ResourceVersion)
	}
	return v, nil
}

// write is one that the API has acknowledged.
type write struct {
	value   string
	version uint64
	at      time.Time
}

// ledger remembers every acknowledged write, and which of them a watch has seen.
type ledger struct {
	book *book
	of   func(*Phase) *Watch // what the watch saw

	mu      sync.Mutex
	acked   map[int]write
	arrived map[int]time.Time
	waiting int // acknowledged, and not arrived
}

func newLedger(b *book, of func(*Phase) *Watch) *ledger {
	return &ledger{book: b, of: of, acked: map[int]write{}, arrived: map[int]time.Time{}}
}

func (l *ledger) ack(n int, w write) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.acked[n] = w
	if _, ok := l.arrived[n]; !ok {
		l.waiting++
	}
}

// arrive takes a write that the watch shows. What it shows again is no event.
func (l *ledger) arrive(n int, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.arrived[n]; ok {
		return
	}
	l.arrived[n] = at
	l.book.note(at, func(p *Phase) { l.of(p).Events++ })
	if w, ok := l.acked[n]; ok {
		l.waiting--
		l.book.span(w.at, at, l.silence)
	}
}

func (l *ledger) silence(p *Phase, took time.Duration) {
	w := l.of(p)
	w.Silence = max(w.Silence, took)
}

// seen returns when the watch first showed a write that was acknowledged after since.
func (l *ledger) seen(since time.Time) (at time.Time, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for n, arrived := range l.arrived {
		if w, acked := l.acked[n]; acked && w.at.After(since) && (!ok || arrived.Before(at)) {
			at, ok = arrived, true
		}
	}
	return at, ok
}

// missing is the number of acknowledged writes that the watch has not seen.
func (l *ledger) missing() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.waiting
}

// settle counts what has not arrived by the end, in the phases of the acknowledgements.
func (l *ledger) settle(end time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for n, w := range l.acked {
		if _, ok := l.arrived[n]; !ok {
			l.book.note(w.at, func(p *Phase) { l.of(p).Missed++ })
			l.book.span(w.at, end, l.silence)
		}
	}
}

// audit holds every acknowledged write against the store, and counts those that are lost:
// not there, another value, or in an object that is older than the acknowledgement.
func (l *ledger) audit(store []configMap) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	byName := map[string]configMap{}
	for _, m := range store {
		byName[m.Metadata.Name] = m
	}
	for n, w := range l.acked {
		m, ok := byName[mapName(n)]
		if ok {
			version, err := m.version()
			if err != nil {
				return err
			}
			ok = m.Data[keyName(n)] == w.value && version >= w.version
		}
		if !ok {
			l.book.note(w.at, func(p *Phase) { p.Lost++ })
		}
	}
	return nil
}
