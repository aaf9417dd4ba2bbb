package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/mensylisir/kubexm/steps/connector/conntest"
)

// model is what an installation comes to that nothing disturbs, and how long it
// takes.
type model struct {
	state   conntest.Snapshot
	varies  map[string]bool // lines that differ from one making to the next, by all but their content
	files   map[string]int64
	install time.Duration
	destroy time.Duration
	events  []event // of the installation
	undoing []event

	// What hosts were asked to do meanwhile, by their names.
	does, undoes   map[string]int   // commands
	bytes, unbytes map[string]int64 // that their proxies carried
	parts, unparts []string         // of kubeadm's work, in order
	puts           int              // uploads to the registry
}

// plainLine is a line of a snapshot without the content of its file.
func plainLine(l string) string {
	f := strings.Fields(l)
	if len(f) > 5 && f[1] == "file" {
		return strings.Join(f[:5], " ")
	}
	return l
}

// settled leaves out what differs from one making of a cluster to the next: keys,
// certificates, salted hashes, and the records of them.
func (m *model) settled(s conntest.Snapshot) conntest.Snapshot {
	var out conntest.Snapshot
	for _, l := range s {
		if p := plainLine(l); m.varies[p] {
			if strings.Contains(l, " 0 bytes ") {
				p += " EMPTY"
			}
			l = p
		}
		out = append(out, l)
	}
	return out
}

// model makes two clusters that nothing disturbs, and takes them away.
func (l *lab) model(ctx context.Context) (*model, error) {
	l.models.once.Do(func() { l.models.model, l.models.err = l.newModel(ctx) })
	return l.models.model, l.models.err
}

func (l *lab) newModel(ctx context.Context) (*model, error) {
	m := &model{varies: map[string]bool{}}
	var first map[string]string
	for i := range 2 {
		g, err := l.clusterSite(ctx, fmt.Sprintf("model-%d", i))
		if err != nil {
			return nil, err
		}
		defer g.close()
		r, events := g.follow(ctx, g.install("-o", "json"), nil)
		if r.code != 0 {
			return nil, fmt.Errorf("install with nothing broken: exit %d: %s", r.code, clip(r.stderr, 3000))
		}
		m.install, m.events, m.state = r.took, events, g.state()
		m.does, m.bytes, m.parts = g.tally()
		m.puts = g.reg.Uploads()
		seen := map[string]string{}
		for _, line := range m.state {
			p := plainLine(line)
			if seen[p] = line; first != nil && first[p] != line {
				m.varies[p] = true
			}
		}
		first = seen
		files, err := filesIn(g.workdir)
		if m.files = files; err != nil {
			return nil, err
		}
		if err := errors.Join(g.leftovers(), g.sound()); err != nil {
			return nil, fmt.Errorf("install with nothing broken: %w", err)
		}
		if r, m.undoing = g.follow(ctx, g.destroy("-o", "json"), nil); r.code != 0 {
			return nil, fmt.Errorf("delete with nothing broken: exit %d: %s", r.code, clip(r.stderr, 3000))
		}
		m.destroy = r.took
		m.undoes, m.unbytes, m.unparts = g.tally()
		if err := g.gone(); err != nil {
			return nil, fmt.Errorf("delete with nothing broken: %w", err)
		}
	}
	return m, nil
}

// tally gives what the hosts were asked to do since the last time.
func (g *clusterSite) tally() (commands map[string]int, bytes map[string]int64, parts []string) {
	commands, bytes = map[string]int{}, map[string]int64{}
	for n, h := range g.hosts {
		commands[n], bytes[n] = h.asked(), h.wire.carried()
		h.onStrike(nil)
		h.wire.strikeAfter(0, nil)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	parts, g.parts = g.parts, nil
	return commands, bytes, parts
}
