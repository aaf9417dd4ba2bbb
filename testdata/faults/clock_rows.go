package main

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
)

// year is near enough.
const year = 365 * 24 * time.Hour

// skews are how far clocks are wrong in the rows.
var skews = []time.Duration{time.Hour, -time.Hour, 10 * year, -10 * year}

// within is as far as clocks may be apart, with room for the way to the host.
const within = 4 * time.Second

// clockRows have clocks that are wrong: of one host, and of all of them, which is what
// a wrong clock of the machine that kubexm runs on looks like, since nothing is
// compared but the two.
func clockRows() []row {
	var rows []row
	for _, who := range []string{"r1", "m1", "w1", ""} {
		for _, by := range skews {
			name := "the clock of " + who
			if who == "" {
				name, by = "this machine's clock", -by // hosts are wrong by the opposite of it
			}
			rows = append(rows, row{
				group: "clock", fault: fmt.Sprintf("%s is %s", name, wrongBy(by, who == "")), quick: by == skews[3] && who == "m1" || who == "" && by == skews[0],
				expect: "exit 3 before a certificate is made, nothing changed; made when it is right",
				run:    func(ctx context.Context, l *lab) (string, error) { return l.skewed(ctx, who, by) },
			})
		}
	}
	for _, by := range []time.Duration{within, -within} {
		rows = append(rows, row{
			group: "clock", fault: fmt.Sprintf("the clock of m1 is %s", wrongBy(by, false)), expect: "an installation like any other", quick: by > 0,
			run: func(ctx context.Context, l *lab) (string, error) { return l.nearly(ctx, by) },
		})
	}
	for first := 0; first < clockJumps; first += len(skews) {
		rows = append(rows, row{
			group: "clock", fault: fmt.Sprintf("the clock of a host jumps meanwhile, %d to %d of %d", first+1, first+len(skews), clockJumps), quick: first == 0,
			expect: "it is made, or an error names the host; refused while it is wrong; made when it is right",
			run:    func(ctx context.Context, l *lab) (string, error) { return l.jumped(ctx, first) },
		})
	}
	return rows
}

// clockJumps is how many clocks jump in all, by each of skews in turn.
const clockJumps = 20

// wrongBy says it in words; mirrored is of this machine's clock, by what hosts are wrong.
func wrongBy(by time.Duration, mirrored bool) string {
	if mirrored {
		by = -by
	}
	word := "ahead"
	if by < 0 {
		word = "behind"
	}
	if by = by.Abs(); by >= year {
		return fmt.Sprintf("%d years %s", by/year, word)
	}
	return by.String() + " " + word
}

// setClock puts a host's clock ahead, or behind.
func (g *clusterSite) setClock(host string, by time.Duration) {
	g.hosts[host].sim.SetMachine(func(m *conntest.Machine) { m.ClockAhead = by })
}

// skewed installs with wrong clocks, and once more with right ones.
func (l *lab) skewed(ctx context.Context, who string, by time.Duration) (string, error) {
	g, err := l.clusterSite(ctx, fmt.Sprintf("clock-%s-%s", who, by))
	if err != nil {
		return "", err
	}
	defer g.close()
	wrong := g.names
	if who != "" {
		wrong = []string{who}
	}
	for _, n := range wrong {
		g.setClock(n, by)
	}
	came, err := g.refusedFor(ctx, wrong)
	if err != nil {
		return came, err
	}
	if err := g.untouched(); err != nil {
		return came, err
	}
	for _, n := range wrong {
		g.setClock(n, 0)
	}
	return came + "; made when it is right", errors.Join(g.again(ctx, g.install()), g.made(ctx))
}

// refusedFor installs, and wants to be refused for the clocks of these hosts.
func (g *clusterSite) refusedFor(ctx context.Context, hosts []string) (string, error) {
	r := g.run(ctx, g.install()...)
	if r.code != 3 || !strings.Contains(r.stderr, "clock") {
		return "", fmt.Errorf("exit %d, want 3 for a clock: %s", r.code, clip(r.stderr, 1200))
	}
	for _, n := range hosts {
		if !slices.ContainsFunc(strings.Split(r.stderr, "\n"), func(line string) bool { return strings.Contains(line, n) }) {
			return "", fmt.Errorf("nothing is said of %s: %s", n, clip(r.stderr, 1200))
		}
	}
	return "exit 3, nothing changed", nil
}

// untouched says what a refused installation made all the same: a key or certificate
// here, kubeadm's work, any change of a host.
func (g *clusterSite) untouched() error {
	g.mu.Lock()
	parts := slices.Clone(g.parts)
	g.mu.Unlock()
	if len(parts) > 0 {
		return fmt.Errorf("KUBEADM RAN: %s", strings.Join(parts, ", "))
	}
	keys, err := pemBelow(g.workdir)
	if err == nil && len(keys) > 0 {
		err = fmt.Errorf("KEYS OR CERTIFICATES WERE MADE: %s", strings.Join(keys, ", "))
	}
	return errors.Join(err, g.gone())
}

// pemBelow gives the files with a key or a certificate in them.
func pemBelow(dir string) (found []string, err error) {
	err = filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(p)
		if strings.Contains(string(text), "-----BEGIN ") {
			found = append(found, p)
		}
		return err
	})
	return found, err
}

// nearly installs with clocks as far apart as they may be.
func (l *lab) nearly(ctx context.Context, by time.Duration) (string, error) {
	if _, err := l.model(ctx); err != nil {
		return "", err
	}
	g, err := l.clusterSite(ctx, fmt.Sprintf("clock-within-%s", by))
	if err != nil {
		return "", err
	}
	defer g.close()
	g.setClock("m1", by)
	if r := g.run(ctx, g.install()...); r.code != 0 {
		return "", fmt.Errorf("exit %d: %s", r.code, clip(r.stderr, 1200))
	}
	keys, err := pemBelow(g.workdir) // that untouched would have found some
	if err == nil && len(keys) == 0 {
		err = errors.New("an installation made neither key nor certificate here: what looks for them shows nothing")
	}
	return "made", errors.Join(err, g.made(ctx))
}

// jumped sets a clock at one of the host's commands.
func (l *lab) jumped(ctx context.Context, first int) (string, error) {
	if _, err := l.model(ctx); err != nil {
		return "", err
	}
	failed, late := 0, 0
	for i := first; i < first+len(skews); i++ {
		g, err := l.clusterSite(ctx, fmt.Sprintf("clock-jump-%d", i))
		if err != nil {
			return "", err
		}
		code, behind, err := g.jump(ctx, i)
		g.close()
		if err != nil {
			return "", fmt.Errorf("number %d, %s: %w", i+1, wrongBy(skews[i%len(skews)], false), err)
		}
		if code != 0 {
			failed++
		}
		if behind {
			late++
		}
	}
	return fmt.Sprintf("%d of %d failed, %d of them not at the first look; all refused while it is wrong, and made when it is right", failed, len(skews), late), nil
}

// jump tells the exit code, and whether an error was another than preflight's. kubeadm
// joins with no certificate that is not valid by its host's clock, as any client of TLS.
func (g *clusterSite) jump(ctx context.Context, i int) (code int, late bool, err error) {
	by, struck := skews[i%len(skews)], ""
	onCommand(70, func(g *clusterSite, h *host, _ *rand.Rand) {
		g.mu.Lock()
		struck = h.name
		g.mu.Unlock()
		g.setClock(h.name, by)
	})(g, i, clockJumps, false)
	for n, h := range g.hosts {
		h.sim.HandleProgram("kubeadm", func(c connector.Cmd, _ []byte) (connector.Result, bool) {
			g.mu.Lock()
			wrong := struck == n
			g.mu.Unlock()
			if !wrong || len(c.Argv) < 2 || c.Argv[1] != "join" || by > 0 && by < year {
				return connector.Result{}, false
			}
			invalid := x509.CertificateInvalidError{Reason: x509.Expired}
			return connector.Result{Exit: 1, Stderr: []byte("error execution phase preflight: " + invalid.Error() + "\n")}, true
		})
	}
	r := g.run(ctx, g.install()...)
	g.mu.Lock()
	who := struck
	g.mu.Unlock()
	if who == "" {
		return 0, false, errors.New("no clock jumped")
	}
	if r.code != 0 && !strings.Contains(r.stderr, who) {
		return r.code, false, fmt.Errorf("exit %d does not name %s: %s", r.code, who, clip(r.stderr, 800))
	}
	if err := g.sound(); err != nil {
		return r.code, false, err
	}
	for _, h := range g.hosts {
		h.onStrike(nil)
		if err := h.quiet(ctx); err != nil {
			return r.code, false, err
		}
	}
	before := g.state()
	if _, err := g.refusedFor(ctx, []string{who}); err != nil {
		return r.code, false, fmt.Errorf("after exit %d, run again: %w", r.code, err)
	}
	if err := differ("CHANGED WHILE IT WAS REFUSED", before, g.state()); err != nil {
		return r.code, false, err
	}
	g.mu.Lock()
	struck = ""
	g.mu.Unlock()
	g.setClock(who, 0)
	return r.code, r.code != 0 && r.code != 3, errors.Join(g.again(ctx, g.install()), g.made(ctx))
}
