package drivers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"strconv"
	"sync"
	"time"
)

// Drivers run against a cluster until Stop.
type Drivers struct {
	config       Config
	admin        *client
	kept, fresh  *client // the writer's
	watched      []*client
	book         *book
	ledger       *ledger
	stock        *ledger        // of the watch with Stock; nil without one
	traffic      sync.WaitGroup // writer and probers
	stopTraffic  context.CancelFunc
	watching     sync.WaitGroup
	stopWatching context.CancelFunc

	stop   sync.Once
	report *Report
	err    error
}

// Start creates what the drivers need in the cluster, waits until it works, and starts
// them. It returns when the phase Baseline begins. Everything ends with ctx too, but
// only Stop removes what was created.
func Start(ctx context.Context, c Config) (*Drivers, error) {
	if err := c.complete(); err != nil {
		return nil, fmt.Errorf("start drivers: %w", err)
	}
	d := &Drivers{config: c, stopTraffic: func() {}, stopWatching: func() {}}
	if err := d.start(ctx); err != nil {
		d.stopTraffic()
		d.stopWatching()
		d.traffic.Wait()
		d.watching.Wait()
		if d.admin != nil {
			err = errors.Join(err, d.remove(context.WithoutCancel(ctx))) // it has its own end
		}
		d.close()
		return nil, fmt.Errorf("start drivers: %w", err)
	}
	return d, nil
}

func (d *Drivers) start(ctx context.Context) (err error) {
	for _, c := range []struct {
		to   **client
		make func() (*client, error)
	}{{&d.admin, d.config.kept}, {&d.kept, d.config.kept}, {&d.fresh, d.config.fresh}} {
		if *c.to, err = c.make(); err != nil {
			return err
		}
	}
	m, err := d.create(ctx)
	if err != nil {
		return err
	}
	if err := d.ready(ctx); err != nil {
		return err
	}
	nodes, err := d.nodes(ctx)
	if err != nil {
		return fmt.Errorf("list nodes: %w", err)
	}
	var ports []string
	for _, node := range nodes {
		ports = append(ports, net.JoinHostPort(node, strconv.Itoa(m.nodePort)))
	}
	d.book = newBook(time.Now())
	d.ledger = newLedger(d.book, func(p *Phase) *Watch { return &p.Watch })
	probers := []*prober{
		newProber(NodePort, d.config.Dial, ports, d.config.ProbeTimeout),
		newProber(Service, d.config.ServiceDial, []string{m.clusterIP}, d.config.ProbeTimeout),
	}
	for _, p := range probers {
		if err := d.answers(ctx, p); err != nil {
			return err
		}
	}
	var watching context.Context
	watching, d.stopWatching = context.WithCancel(ctx)
	if err := d.watch(watching, m.token, d.config.Health, d.ledger); err != nil {
		return err
	}
	if d.config.StockWatch {
		d.stock = newLedger(d.book, func(p *Phase) *Watch { return &p.Stock })
		if err := d.watch(watching, m.token, Stock(), d.stock); err != nil {
			return err
		}
	}
	d.config.Log.InfoContext(ctx, "drivers run", "nodes", len(nodes), "service", m.clusterIP)
	d.drive(ctx, probers)
	return nil
}

// watch starts a watcher, and returns when its first stream has begun. Its account's
// rights may take a moment to be known.
func (d *Drivers) watch(ctx context.Context, token string, health Health, l *ledger) error {
	c := d.config
	c.Certificate, c.Key, c.Token, c.Health = nil, nil, token, health
	by, err := c.kept()
	if err != nil {
		return err
	}
	d.watched = append(d.watched, by)
	up := make(chan struct{}, 1)
	w := &watcher{client: by, book: d.book, of: l.of, arrive: l.arrive, lasts: lasts, up: func() {
		select {
		case up <- struct{}{}:
		default:
		}
	}}
	d.watching.Go(func() { w.run(ctx) })
	timer := time.NewTimer(d.config.Settle)
	defer timer.Stop()
	select {
	case <-up:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return fmt.Errorf("no watch of ConfigMaps began within %s", d.config.Settle)
	}
}

// drive starts the writer and the probers: the baseline begins.
func (d *Drivers) drive(ctx context.Context, probers []*prober) {
	ctx, d.stopTraffic = context.WithCancel(ctx)
	d.book.begin(time.Now())
	late := func(at time.Time, by time.Duration) {
		d.book.note(at, func(p *Phase) { p.Stall = max(p.Stall, by) })
	}
	acked := func(n int, w write) {
		d.ledger.ack(n, w)
		if d.stock != nil {
			d.stock.ack(n, w)
		}
	}
	w := &writer{kept: d.kept, fresh: d.fresh, book: d.book, acked: acked, timeout: d.config.WriteTimeout, run: strconv.FormatInt(time.Now().UnixNano(), 36)}
	d.traffic.Go(func() { pace(ctx, d.config.Writes, late, func(n int) { w.write(ctx, n) }) })
	for _, p := range probers {
		d.traffic.Go(func() {
			pace(ctx, d.config.Probes/2, late, func(n int) {
				err := p.probe(ctx, n)
				d.book.ended(time.Now(), err, p.way)
			})
		})
	}
	d.traffic.Go(func() { watchLoad(ctx, d.loaded) })
}

// Mark ends the phase and begins another, which is named after what happens in it.
func (d *Drivers) Mark(name string) {
	now := time.Now()
	d.book.mark(name, now)
	d.loaded(now, load())
}

func (d *Drivers) loaded(at time.Time, average float64) {
	d.book.note(at, func(p *Phase) { p.Load = max(p.Load, average) })
}

// StockBack waits until the watch with Stock shows a write that was acknowledged after since,
// for at most limit from then on. It returns the time from since to that event.
func (d *Drivers) StockBack(ctx context.Context, since time.Time, limit time.Duration) (took time.Duration, back bool) {
	for {
		if at, ok := d.stock.seen(since); ok {
			return at.Sub(since), true
		}
		if time.Since(since) > limit || !pause(ctx, 50*time.Millisecond) {
			return time.Since(since), false
		}
	}
}

// Stop ends the traffic, waits until the watch has caught up, reads every acknowledged
// write back and removes what Start created. The report is complete even where one of
// these fails: it says so itself. Later calls give the same.
func (d *Drivers) Stop(ctx context.Context) (*Report, error) {
	d.stop.Do(func() {
		end := time.Now()
		d.stopTraffic()
		d.traffic.Wait() // each request has its limit
		d.caughtUp(ctx)
		d.stopWatching()
		d.watching.Wait()
		d.ledger.settle(time.Now())
		if d.stock != nil {
			d.stock.settle(time.Now())
		}
		d.report = &Report{Acked: len(d.ledger.acked), Cores: runtime.NumCPU()}
		var store []configMap
		err := until(ctx, d.config.Settle, func() (err error) {
			store, err = readBack(ctx, d.admin)
			return err
		})
		if err == nil {
			err = d.ledger.audit(store)
		}
		if err != nil {
			d.err = fmt.Errorf("read the writes back: %w", err)
		}
		d.report.Read = err == nil
		d.report.Phases = d.book.close(end)
		if err := d.remove(ctx); err != nil {
			d.err = errors.Join(d.err, fmt.Errorf("remove what was created: %w", err))
		}
		d.close()
	})
	return d.report, d.err
}

// close closes connections.
func (d *Drivers) close() {
	for _, c := range append([]*client{d.admin, d.kept, d.fresh}, d.watched...) {
		if c != nil {
			c.close()
		}
	}
}
