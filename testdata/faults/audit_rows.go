package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mensylisir/kubexm/bundle"
	"github.com/mensylisir/kubexm/installer"
	"github.com/mensylisir/kubexm/installer/audit"
)

// Kills whose audit log is looked at line by line, in all and in one row.
const (
	auditKills = 60
	auditBatch = 6
)

// auditRows kill an installation twice, take what a loss of power of this machine
// would take from the end of its audit log, and let it end.
func auditRows() []row {
	var rows []row
	for first := 0; first < auditKills; first += auditBatch {
		rows = append(rows, row{
			group: "audit", fault: fmt.Sprintf("killed twice, every other log without its last bytes, %d to %d of %d", first+1, first+auditBatch, auditKills), quick: first == auditKills/2,
			expect: "the chain is whole or says what was cut off, and goes on; the receipt is good",
			run:    func(ctx context.Context, l *lab) (string, error) { return l.auditedKills(ctx, first) },
		})
	}
	return append(rows, row{
		group: "audit", fault: "control: a line changed, one taken out, the end of a whole run cut off", expect: "each is found", quick: true, run: auditControl,
	})
}

// output runs kubexm and gives what it prints.
func (s *site) output(ctx context.Context, args ...string) ([]byte, ended) {
	c := s.command(ctx, s.binary, args)
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	err := c.Run()
	if c.ProcessState == nil {
		return nil, ended{code: -1, stderr: err.Error()}
	}
	return stdout.Bytes(), ended{code: c.ProcessState.ExitCode(), stderr: stderr.String()}
}

// auditLog is where the log lies.
func (g *clusterSite) auditLog() string {
	return filepath.Join(g.workdir, ".kubexm", "demo", "audit.jsonl")
}

// audited has kubexm read the audit log to its end, and wants no break of its chain. A
// process that was killed at once has begun none.
func (g *clusterSite) audited(ctx context.Context) (r audit.Report, err error) {
	if !exists(g.auditLog()) {
		return r, nil
	}
	out, e := g.output(ctx, "audit", "verify", "--cluster", "demo", "--workdir", g.workdir, "-o", "json")
	if err := json.Unmarshal(out, &r); err != nil || e.code != 0 || len(r.Problems) > 0 {
		return r, fmt.Errorf("THE AUDIT LOG'S CHAIN IS BROKEN: exit %d: %s %s", e.code, clip(string(out), 600), clip(e.stderr, 600))
	}
	return r, nil
}

func (l *lab) auditedKills(ctx context.Context, first int) (string, error) {
	n := auditBatch
	if l.quick {
		n = 2
	}
	killed, torn, pace := 0, 0, 1.0
	for i := first; i < first+n; i++ {
		g, err := l.clusterSite(ctx, fmt.Sprintf("audit-%d", i))
		if err != nil {
			return "", err
		}
		k, t, err := g.auditedKill(ctx, i, n, &pace)
		g.close()
		if err != nil {
			return "", fmt.Errorf("number %d: %w", i+1, err)
		}
		killed, torn = killed+k, torn+t
	}
	if killed < n/2 {
		return "", fmt.Errorf("only %d of %d kills came before the end", killed, 2*n)
	}
	return fmt.Sprintf("chains whole after %d kills, %d lines cut off and told; %d receipts good", killed, torn, n), nil
}

// auditedKill tells how many of two kills came before the end, and how many lines of
// the log were cut off. pace is how fast the machine is, against when it was measured.
func (g *clusterSite) auditedKill(ctx context.Context, i, of int, pace *float64) (killed, torn int, err error) {
	m, err := g.model(ctx)
	if err != nil {
		return 0, 0, err
	}
	for again := range 2 {
		from := g.logged()
		ran, err := stopAfter(g.command(ctx, g.binary, g.install()), time.Duration(*pace*float64(moment(i, of, m.install*3/4, 4000+uint64(again)))))
		if err != nil {
			return killed, torn, err
		}
		if ran {
			killed++
		} else {
			*pace *= 0.6
		}
		for _, h := range g.hosts {
			if err := h.quiet(ctx); err != nil {
				return killed, torn, err
			}
		}
		before, err := g.audited(ctx)
		if err != nil {
			return killed, torn, fmt.Errorf("after kill %d: %w", again+1, err)
		}
		if !ran || i%2 == 0 {
			continue
		}
		within, err := g.losePowerHere(from, chance(i, 80+uint64(again)))
		if err != nil {
			return killed, torn, err
		}
		after, err := g.audited(ctx)
		if err != nil {
			return killed, torn, fmt.Errorf("after a loss of power: %w", err)
		}
		if within && after.Torn != before.Torn+1 {
			return killed, torn, fmt.Errorf("a line was cut off, and it counts %d, before %d", after.Torn, before.Torn)
		}
	}
	k, err := g.keys(ctx)
	if err != nil {
		return killed, torn, err
	}
	if err := errors.Join(g.again(ctx, g.install("--sign-key", k.private, "--key-password-file", k.password)), g.made(ctx)); err != nil {
		return killed, torn, err
	}
	r, err := g.audited(ctx)
	if err != nil {
		return killed, torn, err
	}
	return killed, r.Torn, g.receipted(ctx, k, r)
}

// logged is how long the audit log is.
func (g *clusterSite) logged() int64 {
	info, err := os.Stat(g.auditLog())
	if err != nil {
		return 0
	}
	return info.Size()
}

// losePowerHere takes from the log's end what no sync had seen to, as much of it as
// chance has it: the lines behind the one that says that the run begins, which is
// synced. It reports whether it went through a line. Half of the time the length stays,
// and the content is gone.
func (g *clusterSite) losePowerHere(from int64, rng *rand.Rand) (within bool, err error) {
	text, err := os.ReadFile(g.auditLog())
	if err != nil {
		return false, err
	}
	begins := []byte(`"type":"run"`)
	at := bytes.Index(text[from:], begins)
	if at < 0 {
		return false, nil // killed before it began
	}
	at += int(from)
	at += bytes.IndexByte(text[at:], '\n') + 1
	if at == len(text) {
		return false, nil
	}
	cut := at + rng.IntN(len(text)-at)
	within = text[cut-1] != '\n'
	if rng.IntN(2) == 0 {
		clear(text[cut:])
		return true, os.WriteFile(g.auditLog(), text, 0o600)
	}
	return within, os.WriteFile(g.auditLog(), text[:cut], 0o600)
}

// receipted verifies the newest receipt, and compares what it says with the bundle,
// the hosts and the log.
func (g *clusterSite) receipted(ctx context.Context, k *keys, log audit.Report) error {
	all, err := filepath.Glob(filepath.Join(g.workdir, ".kubexm", "demo", "receipts", "*.sigstore.json"))
	if err != nil || len(all) == 0 {
		return fmt.Errorf("there is no signed receipt: %w", err)
	}
	out, e := g.output(ctx, "receipt", "verify", "--key", k.public, "-o", "json", slices.Max(all))
	var r struct {
		installer.Receipt
		Root     string `json:"root"`
		Verified bool   `json:"verified"`
		AuditLog string `json:"auditLog"`
	}
	if err := json.Unmarshal(out, &r); err != nil || e.code != 0 {
		return fmt.Errorf("the receipt: exit %d: %s", e.code, clip(e.stderr, 600))
	}
	b, err := bundle.Open(ctx, g.bundle, bundle.Policy{AllowUnsigned: true})
	if err != nil {
		return err
	}
	defer b.Close()
	var hosts []string
	for _, h := range r.Hosts {
		hosts = append(hosts, h.Name)
	}
	if !r.Verified || r.AuditLog != "whole" || r.Root != b.Root.Digest.String() || !slices.Equal(hosts, g.names) || r.Audit != log.Head || !strings.HasPrefix(r.Config, "sha256:") {
		return fmt.Errorf("the receipt says %s", clip(string(out), 800))
	}
	return nil
}

// auditControl touches a log, to show that it would be found.
func auditControl(ctx context.Context, l *lab) (string, error) {
	g, err := l.clusterSite(ctx, "audit-control")
	if err != nil {
		return "", err
	}
	defer g.close()
	if r := g.run(ctx, g.install()...); r.code != 0 {
		return "", errors.New(r.String())
	}
	whole, err := os.ReadFile(g.auditLog())
	if err != nil {
		return "", err
	}
	lines := bytes.SplitAfter(whole, []byte("\n"))
	middle := len(lines) / 2
	changed := slices.Clone(lines)
	changed[middle] = bytes.Replace(lines[middle], []byte(`"host":"`), []byte(`"host":"x`), 1)
	for what, text := range map[string][]byte{
		"a line that was changed":     bytes.Join(changed, nil),
		"a line that was taken out":   bytes.Join(slices.Delete(slices.Clone(lines), middle, middle+1), nil),
		"the end that was cut off":    bytes.Join(lines[:middle], nil),
		"an end that was never there": append(slices.Clone(whole), whole...),
	} {
		if _, err := g.audited(ctx); err != nil {
			return "", fmt.Errorf("before %s: %w", what, err)
		}
		if err := os.WriteFile(g.auditLog(), text, 0o600); err != nil {
			return "", err
		}
		if _, err := g.audited(ctx); err == nil || bytes.Equal(text, whole) {
			return "", fmt.Errorf("%s is not found", what)
		}
		if err := os.WriteFile(g.auditLog(), whole, 0o600); err != nil {
			return "", err
		}
	}
	return "each is found", nil
}
