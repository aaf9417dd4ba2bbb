package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mensylisir/kubexm/installer/pipeline"
	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/installer/sitetest"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
	"github.com/mensylisir/kubexm/steps/op"
	"github.com/mensylisir/kubexm/steps/pki"
)

// net and net6 are the lab's network, for simulated hosts.
const (
	net  = "192.0.2"
	net6 = "2001:db8:0:0"
)

// tellOn returns what a config does to simulated hosts.
func tellOn(t sitetest.TB, root string, m made) []string {
	t.Helper()
	text, err := m.text(root)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	text = strings.NewReplacer("${LAB_NET}", net, "${LAB_NET6}", net6, "${LAB_KEY}", "key", `"${env:REGISTRY_PASSWORD}"`, "canary-of-the-registry", `"${env:REGISTRY_PULL_PASSWORD}"`, "canary-of-its-readers", `"${env:SITE_PASSWORD}"`, "secret",
		": etcd/", ": "+dir+"/").Replace(text)
	o := sitetest.Options{Config: text, Root: root, Repositories: map[string]string{"debian-13": manifest.Deb, "kubexmlab-9": manifest.RPM},
		Change: func(h manifest.Host, mach *conntest.Machine) {
			if !strings.HasPrefix(h.Address, net+".") { // the config has its own
				mach.Addresses = []string{h.InternalAddress[0] + "/24"}
			}
			if h.Arch == "arm64" {
				mach.Machine = "aarch64"
			}
			if system := m.Systems[h.Name]; system != "" {
				id, release, _ := strings.Cut(system, "-")
				mach.OSRelease = fmt.Sprintf("ID=%q\nVERSION_ID=%q\n", id, release)
				if id != "debian" {
					mach.Packages = "dnf"
				}
			}
		}}
	s := sitetest.Of(t, o)
	if s.ExternalRegistry != nil { // the lab's third host
		s.ExternalRegistry.Address = net + ".13:8443"
	}
	for _, h := range s.Cluster.Spec.Hosts {
		if h.User == "root" {
			continue
		}
		if r, err := s.Sims[h.Name].Exec(t.Context(), connector.Cmd{Verb: connector.VerbUserAdd, Argv: []string{"useradd", "--create-home", "--home-dir", "/home/" + h.User, h.User}}); err != nil || r.Exit != 0 {
			t.Fatalf("user %s: %s %v", h.User, r.Stderr, err)
		}
	}
	if len(s.Cluster.Spec.System.NTPServers) > 0 { // as in the lab's root file systems
		for _, h := range s.Cluster.Spec.Hosts {
			sim, unit := s.Sims[h.Name], "chrony.service"
			if strings.HasPrefix(m.Systems[h.Name], "kubexmlab") {
				unit = "chronyd.service"
			}
			sim.AddFile("/usr/sbin/chronyd", "", 0o755)
			sim.AddDir("/etc/chrony", 0o755)
			sim.AddUnit(unit, "[Install]\nWantedBy=multi-user.target\n", false, false)
			sim.AddFile("/usr/share/zoneinfo/"+s.Cluster.Spec.System.Timezone, "TZif", 0o644)
		}
	}
	for _, a := range s.Cluster.Spec.Addons { // files elsewhere do not exist
		if a.Type == "yaml" {
			s.Bundle.Text[a.Name] = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: " + a.Name + "}, spec: {replicas: 1}}\n"
		}
	}
	external := part.StoreOf(s.Cluster).Kind == part.External
	if external {
		writeKeys(t, dir)
	}
	tr := s.Transcribe()
	runs := m.Runs
	if len(runs) == 0 {
		runs = []string{"create", "delete"}
	}
	for _, name := range runs {
		found, ok := pipeline.Named(name)
		if !ok {
			t.Fatalf("no pipeline %q", name)
		}
		p := func() plan.Pipeline { return found }
		tr.Plan(p)
		if err := s.Run(p, func(n *plan.Node) {
			if external && n.Step.Meta().Name == "etcd.check-external" { // an external etcd is not simulated
				n.Step = op.Check("etcd.check-external", func(context.Context, *steps.Host) (steps.Findings, error) { return nil, nil })
			}
		}); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	lines := tr.Lines()
	for i := range lines { // the cluster record contains the paths of the config's files
		lines[i] = strings.ReplaceAll(lines[i], dir, "<folder>")
	}
	return lines
}

// writeKeys writes the client's files of an external etcd.
func writeKeys(t sitetest.TB, dir string) {
	t.Helper()
	ca, err := pki.NewAuthority("somebody's etcd", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	client, err := ca.Issue(pki.Request{CommonName: "client", Client: true}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	root, _, err := ca.Encode()
	if err != nil {
		t.Fatal(err)
	}
	cert, key, err := client.Encode()
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{"ca.crt": root, "client.crt": cert, "client.key": key} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// teller returns the lines of configs, each computed once, all in parallel: most of their time
// is waiting.
func teller(ctx context.Context, root string, t *table) func(made) ([]string, error) {
	type told struct {
		lines []string
		err   error
	}
	all := t.Walk
	for _, s := range t.Scenarios {
		all = append(all[:len(all):len(all)], s.made)
	}
	results, begun := map[string]told{}, map[string]bool{}
	var mu sync.Mutex
	var work sync.WaitGroup
	for _, m := range all {
		key := fmt.Sprint(m)
		if begun[key] {
			continue
		}
		begun[key] = true
		work.Go(func() {
			lines, err := alone(ctx, func(t sitetest.TB) []string { return tellOn(t, root, m) }) //nolint:contextcheck // t has it
			mu.Lock()
			defer mu.Unlock()
			results[key] = told{lines, err}
		})
	}
	work.Wait()
	return func(m made) ([]string, error) {
		r := results[fmt.Sprint(m)]
		return r.lines, r.err
	}
}

// alone runs f outside of a test.
func alone(ctx context.Context, f func(sitetest.TB) []string) (lines []string, err error) {
	b := &bench{ctx: ctx}
	done := make(chan struct{})
	go func() {
		defer close(done)
		lines = f(b)
	}()
	<-done
	for _, clean := range slices.Backward(b.cleanups) {
		clean()
	}
	return lines, errors.Join(b.errs...)
}

// bench implements the part of testing.TB that is required.
type bench struct {
	ctx      context.Context //nolint:containedctx // as a testing.T has
	mu       sync.Mutex
	errs     []error
	cleanups []func()
}

func (*bench) Helper()                    {}
func (b *bench) Context() context.Context { return b.ctx }

func (b *bench) Errorf(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.errs = append(b.errs, fmt.Errorf(format, args...))
}

func (b *bench) Fatalf(format string, args ...any) {
	b.Errorf(format, args...)
	runtime.Goexit()
}

func (b *bench) Fatal(args ...any) { b.Fatalf("%s", fmt.Sprint(args...)) }

func (b *bench) Cleanup(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.cleanups = append(b.cleanups, f)
}

func (b *bench) TempDir() string {
	dir, err := os.MkdirTemp("", "kubexm-scenarios-")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}
