package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
)

// Cuts of each kind of push, in all and in one row.
const (
	pushCuts  = 100
	pushBatch = 10
)

// The two commands that fill a registry.
const (
	registryPush = "registry push"
	bundlePush   = "bundle push"
)

// pushRows cut the connections of a push at offsets that are spread over its bytes,
// into a registry that is empty, and one that has half of it.
func pushRows() []row {
	var rows []row
	for _, command := range []string{registryPush, bundlePush} {
		for first := 0; first < pushCuts; first += pushBatch {
			rows = append(rows, row{
				group: "push", fault: fmt.Sprintf("%s is reset, %d to %d of %d", command, first+1, first+pushBatch, pushCuts),
				expect: "no tag before its content; all of it after 1 re-run at most", quick: first == pushCuts/2, waits: true,
				run: func(ctx context.Context, l *lab) (string, error) { return l.cutPushes(ctx, command, first) },
			})
		}
	}
	return append(rows, row{
		group: "push", fault: "control: a naive push", expect: "tags before their content are found", quick: true, run: naivePush,
	})
}

// way is a registry behind a proxy.
type way struct {
	*memoryRegistry
	server *httptest.Server
	proxy  *tcpProxy
}

func newWay(d *memoryRegistry) (*way, error) {
	w := &way{memoryRegistry: d, server: httptest.NewUnstartedServer(d)}
	w.server.Config.ErrorLog = silent()
	w.server.Start()
	var err error
	if w.proxy, err = newTCPProxy("127.0.0.1:0", strings.TrimPrefix(w.server.URL, "http://")); err != nil {
		w.server.Close()
	}
	return w, err
}

func (w *way) close() {
	w.proxy.close()
	w.server.CloseClientConnections()
	w.server.Close()
}

// push gives the arguments of a push of the signed bundle over the way.
func (w *way) push(p *pushes, command string) []string {
	host := fmt.Sprintf("127.0.0.1:%d", w.proxy.port())
	common := []string{"--key", p.key, "--plain-http", "-p", "4"}
	if command == bundlePush {
		return slices.Concat([]string{"bundle", "push", p.archive, host + "/bundles/demo:1"}, common)
	}
	return slices.Concat([]string{"registry", "push", "--bundle", p.archive, "--to", host + "/kube"}, common)
}

// cutPushes cuts a batch of pushes, each once, and has each run again that failed.
func (l *lab) cutPushes(ctx context.Context, command string, first int) (string, error) {
	if err := l.pushes.ready(ctx, l); err != nil {
		return "", err
	}
	n := pushBatch
	if l.quick {
		n = 4
	}
	failed, struck, tagged := 0, 0, 0
	for i := first; i < first+n; i++ {
		r, err := l.cutPush(ctx, command, i, n)
		if err != nil {
			return "", fmt.Errorf("cut %d: %w", i+1, err)
		}
		tagged += r.tags
		if r.struck {
			struck++
		}
		if r.failed {
			failed++
		}
	}
	if struck < n-1 { // one may fall behind what a push that mounts sends
		return "", fmt.Errorf("only %d of %d cuts fell into the push", struck, n)
	}
	return fmt.Sprintf("every tag whole, %d of them right after the cut; all there; %d of %d pushes failed, and were run again", tagged, failed, n), nil
}

// cutCame is what came of one cut.
type cutCame struct {
	struck bool // it fell into the push
	failed bool // the push did not get over it by itself
	tags   int  // that there were right after it
}

// cutPush cuts one push. Every second registry has half of it already. Of four ways
// two come back at once, and two stay away until the command has ended.
func (l *lab) cutPush(ctx context.Context, command string, i, of int) (came cutCame, err error) {
	d, whole := newMemoryRegistry(l.pushes.carried), l.pushes.whole[command]
	if i%2 == 1 {
		d = whole.half()
	}
	w, err := newWay(d) //nolint:contextcheck // it lasts as long as the row
	if err != nil {
		return came, err
	}
	defer w.close()
	rng := chance(i, 60)
	at := 1 + int64((float64(i%of)+rng.Float64())/float64(of)*float64(l.pushes.bytes[command][i%2]))
	broke := make(chan struct{})
	w.proxy.strikeAfter(at, func(p *pair) {
		close(broke)
		if i/2%2 == 0 {
			w.proxy.unplug()
			w.proxy.each(reset)
		}
		reset(p)
	})
	s := &site{lab: l, root: l.pushes.dir}
	r := s.run(ctx, w.push(&l.pushes, command)...)
	select {
	case <-broke:
		came.struck = true
	default:
	}
	w.proxy.plug()
	d.mu.Lock()
	came.tags = len(d.tags)
	d.mu.Unlock()
	if err := d.sound(); err != nil {
		return came, fmt.Errorf("after byte %d, exit %d: %w", at, r.code, err)
	}
	if came.failed = r.code != 0; came.failed {
		if r.code != 1 || r.why() == "" {
			return came, fmt.Errorf("after byte %d: exit %d without a word: %s", at, r.code, clip(r.stderr, 500))
		}
		if again := s.run(ctx, w.push(&l.pushes, command)...); again.code != 0 {
			return came, fmt.Errorf("after byte %d: %s; run again: %s", at, r.why(), again)
		}
	}
	if err := errors.Join(d.sound(), d.lacks(whole)); err != nil {
		return came, fmt.Errorf("after byte %d, exit %d: %w", at, r.code, err)
	}
	return came, nil
}

// naivePush tags images before it sends them, to show that it would be found.
func naivePush(ctx context.Context, l *lab) (string, error) {
	if err := l.pushes.ready(ctx, l); err != nil {
		return "", err
	}
	whole := l.pushes.whole[registryPush]
	d := newMemoryRegistry(l.pushes.carried)
	send := func(url string, x document) error {
		r := httptest.NewRequestWithContext(ctx, http.MethodPut, url, bytes.NewReader(x.body))
		r.Header.Set("Content-Type", x.typ)
		rec := httptest.NewRecorder()
		if d.ServeHTTP(rec, r); rec.Code != http.StatusCreated {
			return fmt.Errorf("%s: %d", url, rec.Code)
		}
		return nil
	}
	for at, digest := range whole.tags {
		repo, tag, _ := strings.Cut(at, ":")
		if err := send("/v2/"+repo+"/manifests/"+tag, whole.held[repo+"@"+digest]); err != nil {
			return "", err
		}
	}
	broken := d.sound()
	if broken == nil || !strings.Contains(broken.Error(), "BEFORE IT WAS WHOLE") || !strings.Contains(broken.Error(), "TAGGED AND NOT WHOLE") || d.lacks(whole) == nil {
		return "", fmt.Errorf("tags without content are taken for whole images: %w", broken)
	}
	// With everything there in the end, the moment before is still on record.
	d.mu.Lock()
	maps.Copy(d.held, whole.held)
	d.mu.Unlock()
	after := d.sound()
	if after == nil || strings.Contains(after.Error(), "NOT WHOLE") || d.lacks(whole) != nil {
		return "", fmt.Errorf("a tag before its content is forgotten: %w", after)
	}
	return fmt.Sprintf("%d tags before their content are found", len(d.early)), nil
}
