package hostile

import (
	"bytes"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var (
	everything = flag.Bool("all", false, "every row with every command, and all mutations")
	update     = flag.Bool("update", false, "write docs/reference/hostile-input.md")
)

// What a refusal may take.
const (
	mostMemory = 256 << 20
	mostTime   = 10 * time.Second // of a processor: others may be at work on this machine
)

// attempt is one way to open a bundle.
type attempt struct {
	name  string
	args  func(bundle, stage string) []string // but whom it trusts
	stage bool                                // it writes into a folder that it is told
}

func (s *site) attempts() []attempt {
	return []attempt{
		{name: "verify", args: func(b, _ string) []string { return []string{"bundle", "verify", "-o", "json", b} }},
		{name: "extract", stage: true, args: func(b, stage string) []string {
			return []string{"bundle", "extract", "-o", "json", b, "--layout", stage}
		}},
		{name: "install", args: func(b, _ string) []string {
			return []string{"install", "-o", "json", "-f", s.config, "--bundle", b}
		}},
	}
}

// TestHostileBundles holds the real kubexm to the table, and to refusing what no table
// has.
func TestHostileBundles(t *testing.T) {
	s := newSite(t)
	t.Run("the true bundle", s.control)
	t.Run("rows", s.rows)
	t.Run("swapped", s.swapped)
	t.Run("mutations", s.mutations)
	t.Logf("%d rows; %d runs of kubexm, of which %d ended in a refusal; the most that one took: %d MiB of memory, %s of a processor, %s",
		s.tally.rows, s.tally.runs, s.tally.refused, s.tally.memory>>20, s.tally.cpu.Round(time.Millisecond), s.tally.took.Round(time.Millisecond))
}

func (s *site) rows(t *testing.T) {
	for i, row := range rows() {
		if !*everything && !row.smoke(i) {
			continue
		}
		t.Run(row.group+"/"+row.name, func(t *testing.T) {
			s.tally.rows++
			b, err := row.make(s.truth)
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(t.TempDir(), "x.tar.zst")
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
			for j, a := range s.attempts() {
				if row.install && a.name != "install" || !row.install && !*everything && j > 0 && i%6 != j { // the others one way each
					continue
				}
				if r := s.refused(t, a, path, row.codeOf(a), row.record, row.trusted(s)...); !strings.Contains(r.stderr, row.says) {
					t.Errorf("%s: %q is not said:\n%.2000s", a.name, row.says, r.stderr)
				}
			}
		})
	}
}

// smoke reports whether a row is among those that every run of the tests tries.
func (r row) smoke(i int) bool { return !r.slow && (!strings.Contains(r.name, "cut at") || i%16 == 0) }

// codeOf is what an attempt has to say.
func (r row) codeOf(a attempt) string {
	if a.stage && r.extract != "" {
		return r.extract
	}
	return r.code
}

// anybody is the flag that trusts whoever made a bundle.
const anybody = "--allow-unsigned"

// trusted are the flags that say whom a row's runs trust.
func (r row) trusted(s *site) []string {
	switch {
	case r.group != signatures:
		return []string{anybody}
	case r.identity:
		return []string{"--trusted-root", s.trustedRoot, "--certificate-identity", "nobody@example.org", "--certificate-oidc-issuer", "https://issuer.example.org"}
	}
	return []string{"--key", s.key}
}

// control: the writer here writes what kubexm wrote, and what the attempts do with
// that shows that they would be seen to do it with another one.
func (s *site) control(t *testing.T) {
	b, err := s.truth.pack().bytes()
	if err != nil {
		t.Fatal(err)
	}
	own, err := os.ReadFile(s.bundle)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(b, own) {
		t.Fatal("the writer of the rows writes the true bundle with other bytes")
	}
	dir := t.TempDir()
	for _, a := range s.attempts() {
		r := s.run(t, dir, append(a.args(s.bundle, filepath.Join(dir, "stage")), anybody)...)
		if want := map[string]int{"install": 3}[a.name]; r.code != want {
			t.Errorf("%s: exit %d, want %d\n%s", a.name, r.code, want, r.stderr)
		}
	}
	if s.calls.Swap(0) == 0 {
		t.Error("an install of the true bundle called no host")
	}
	if n := len(snapshot(t, filepath.Join(dir, "stage"))); n < 20 {
		t.Errorf("%d files were extracted", n)
	}
	if b, err = signed(maker, nil, nil)(s.truth); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "signed.tar.zst")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if r := s.run(t, dir, "bundle", "verify", "--key", s.key, path); r.code != 0 {
		t.Errorf("what its maker signed: exit %d\n%s", r.code, r.stderr)
	}
	s.taken(t, path)
}

// taken: what the rows for install alone refuse is taken on a site that has had an
// older bundle, or that says that it wants this one, and on hosts that it was made for.
func (s *site) taken(t *testing.T, path string) {
	t.Helper()
	arm, err := signed(maker, nil, nil)(s.truth.other)
	if err != nil {
		t.Fatal(err)
	}
	of := filepath.Join(t.TempDir(), "arm.tar.zst")
	if err := os.WriteFile(of, arm, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, x := range map[string]struct {
		record string
		args   []string
	}{
		"an older bundle on record": {`{"serial": "20000101000000"}`, []string{"-f", s.config, "--bundle", path}},
		"a newer one, and told to":  {newerRecord, []string{"-f", s.config, "--bundle", path, "--allow-downgrade"}},
		"hosts of its platform":     {"", []string{"-f", s.otherConfig, "--bundle", of}},
	} {
		dir := t.TempDir()
		if err := recorded(dir, x.record); err != nil {
			t.Fatal(err)
		}
		r := s.run(t, dir, append([]string{"install", "-o", "json", "--key", s.key}, x.args...)...)
		if n := s.calls.Swap(0); r.code != 3 || n == 0 {
			t.Errorf("%s: exit %d after %d calls of hosts\n%s", name, r.code, n, r.stderr)
		}
	}
}

// recorded writes what a machine keeps of the cluster's last bundle.
func recorded(dir, record string) error {
	if record == "" {
		return nil
	}
	dir = filepath.Join(dir, ".kubexm", "site", "applied")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "applied.json"), []byte(record), 0o600)
}

// refused runs an attempt on a bundle, which has to end in the code wanted.
func (s *site) refused(t *testing.T, a attempt, path, want, record string, trust ...string) ran {
	t.Helper()
	site := t.TempDir()
	cwd := filepath.Join(site, "a", "b", "c")
	if err := os.MkdirAll(cwd, 0o750); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{filepath.Join(cwd, "x"), filepath.Join(site, "x")} { // what a link or a name may be meant for
		if err := os.WriteFile(name, []byte("mine"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := recorded(cwd, record); err != nil {
		t.Fatal(err)
	}
	before := snapshot(t, site)
	r := s.run(t, cwd, append(a.args(path, filepath.Join(cwd, "stage")), trust...)...)
	after := snapshot(t, site)
	if a.stage {
		maps.DeleteFunc(after, func(name, _ string) bool { return strings.HasPrefix(name, filepath.Join("a", "b", "c", "stage")) })
	}
	if d := cmp.Diff(before, after); d != "" {
		t.Errorf("%s: written outside (-before +after):\n%s", a.name, d)
	}
	s.bounds(t, a, r)
	if want == "same" {
		if r.code != 0 {
			t.Errorf("%s: exit %d, want 0\n%s", a.name, r.code, r.stderr)
		}
		return r
	}
	if codes := r.said(); r.code == 0 || len(codes) == 0 || codes[0] != want {
		t.Errorf("%s: exit %d with %q, want %q\n%.2000s", a.name, r.code, codes, want, r.stderr)
	}
	return r
}

// tally is what all runs took.
type tally struct {
	rows, runs, refused int
	memory              int64 // bytes, of the run that took the most
	cpu, took           time.Duration
}

func (y *tally) add(r ran) {
	y.runs++
	if r.code == 4 {
		y.refused++
	}
	y.memory, y.cpu, y.took = max(y.memory, int64(r.usage.MaxRSS)), max(y.cpu, r.usage.CPU), max(y.took, r.took)
}

// bounds is what must hold of every run, however it ended.
func (s *site) bounds(t *testing.T, a attempt, r ran) {
	t.Helper()
	if n := s.calls.Swap(0); n != 0 {
		t.Errorf("%s: hosts were called %d times", a.name, n)
	}
	s.tally.add(r)
	if r.usage.MaxRSS > mostMemory || r.usage.CPU > mostTime {
		t.Errorf("%s: %d MiB of memory, %s of a processor", a.name, r.usage.MaxRSS>>20, r.usage.CPU)
	}
	for _, bad := range []string{"panic:", "goroutine ", "fatal error:", "\x1b", "\x00"} {
		if strings.Contains(r.stderr+r.stdout, bad) {
			t.Errorf("%s: %q is in what it said:\n%.2000s", a.name, bad, r.stderr)
		}
	}
	if len(r.stderr)+len(r.stdout) > 256<<10 {
		t.Errorf("%s: it said %d bytes", a.name, len(r.stderr)+len(r.stdout))
	}
	if r.usage.MaxRSS > mostMemory/2 || r.took > 3*time.Second {
		t.Logf("%s: %d MiB, %s of a processor, %s", a.name, r.usage.MaxRSS>>20, r.usage.CPU, r.took)
	}
}
