// Command kube-vip stands in for kube-vip v1.2 in the lab, in ARP mode for the control plane. It
// reads the same environment variables and the same kubeconfig, takes the same Lease by the rules
// of client-go's leader election, and assigns the virtual IP with the program ip. It is stricter
// where a mistake would have no effect in the lab: it refuses variables that it does not know.
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// adminConf is where kube-vip looks for its kubeconfig (pkg/manager/manager.go).
const adminConf = "/etc/kubernetes/admin.conf"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Environ()); err != nil {
		report("kube-vip ends", "err", err)
		os.Exit(1)
	}
}

// report writes an event and its details to the container's log.
func report(event string, details ...any) {
	fmt.Fprintln(os.Stderr, append([]any{event}, details...)...)
}

func run(ctx context.Context, args, environ []string) error {
	if len(args) != 1 || args[0] != "manager" {
		return fmt.Errorf("unknown arguments %q: only the command manager exists here", args)
	}
	c, err := readConfig(environ)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(adminConf)
	if err != nil {
		// Upstream's looks for the token of a service account then, and a static pod has none.
		return fmt.Errorf("could not create k8s REST config: %w", err)
	}
	// Its own API server, whatever the kubeconfig says; hostAliases make the name 127.0.0.1.
	client, err := newClient(text, "https://"+net.JoinHostPort("kubernetes", c.port))
	if err != nil {
		return err
	}
	link, err := newLink(c.networkInterface, c.address)
	if err != nil {
		return err
	}
	if err := link.up(); err != nil {
		return fmt.Errorf("checking interface: %w", err)
	}
	go metrics(ctx, c.metrics)
	report("cluster membership", "namespace", c.namespace, "lock", c.leaseName, "id", c.node)
	if err := link.remove(ctx); err != nil { // an earlier process may have been killed
		report("could not delete virtualIP", "err", err)
	}
	e := &elector{lease: client.lease(c.namespace, c.leaseName), identity: c.node, duration: c.duration, deadline: c.deadline, retry: c.retry}
	err = e.run(ctx, func(ctx context.Context) { hold(ctx, link) })
	// The context may be over, and the address has to go all the same.
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return errors.Join(err, link.remove(last))
}

// arpRate is how often the address is announced (vip_arpRate, 3000 ms by default).
const arpRate = 3 * time.Second

// address is the virtual IP on an interface.
type address interface {
	add(context.Context) error // also where it is there already
	announce() error
}

// hold keeps the address on the interface and announces it, until the lease is lost.
func hold(ctx context.Context, a address) {
	for ctx.Err() == nil {
		if err := a.add(ctx); err != nil && ctx.Err() == nil {
			report("failed to add IP", "err", err)
		}
		if err := a.announce(); err != nil {
			report("failed to broadcast ARP", "err", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(arpRate):
		}
	}
}

// metrics answers on the metrics' address. Upstream's logs an address that is taken, and goes on.
func metrics(ctx context.Context, at string) {
	s := &http.Server{Addr: at, ReadHeaderTimeout: 2 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "# kube-vip of the lab has no metrics")
	})}
	go func() {
		<-ctx.Done()
		_ = s.Close()
	}()
	if err := s.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		report("prometheus HTTP server", "err", err)
	}
}
