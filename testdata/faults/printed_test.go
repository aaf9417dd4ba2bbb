package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mensylisir/kubexm/steps/controlplane"
	"github.com/mensylisir/kubexm/steps/pki"
	"github.com/mensylisir/kubexm/steps/steptest"
	"github.com/mensylisir/kubexm/testdata/built"
)

// printedConfig is the config that the printed lines work on: demo, on hosts with the
// names that the examples use.
const printedConfig = `apiVersion: kubexm.mensylisir.io/v1alpha1
kind: Cluster
metadata: {name: demo}
spec:
  ssh: {user: root, password: "${env:KUBEXM_SSH_PASSWORD}"}
  hosts:
%s  roleGroups: {registry: [r1], master: [m1], worker: [w1, w2]}
  kubernetes: {version: %s}
  etcd: {type: kubeadm}
  network: {plugin: flannel}
`

// printed is a folder in which printed lines are typed, beside a simulated site.
type printed struct {
	*clusterSite
	t        *testing.T
	base     string // what each source begins with
	bin      string
	registry string // a registry of nobody's
	made     bool   // the cluster; the lane of the site alone asks
	version  string
}

// unrun are printed lines that cannot be typed here, each with the reason. One that
// is printed no more has to leave the list.
func unrun() map[string]string {
	return map[string]string{
		"kubexm node add -f config.yaml --bundle demo.tar.zst --key cosign.pub --dry-run": "the site of this test has no such hosts; installer tests the command on sites in memory",
		"kubexm node add w4 w5 -f config.yaml --bundle demo.tar.zst --key cosign.pub":     "the site of this test has no such hosts; installer tests the command on sites in memory",
		"kubexm node delete w3 -f config.yaml --dry-run":                                  "the site of this test has no such hosts; installer tests the command on sites in memory",
		"kubexm node delete w3 -f config.yaml --yes":                                      "the site of this test has no such hosts; installer tests the command on sites in memory",
		"kubexm node delete m1 -f config.yaml --dead --yes --write":                       "the site of this test has no such hosts; installer tests the command on sites in memory",
		"kubexm etcd move-leader e2 -f config.yaml":                                       "the etcd of this test's site has one member, on m1; installer tests the command on sites in memory",
		"kubexm etcd add -f config.yaml --bundle demo.tar.zst --key cosign.pub --dry-run": "the etcd of this test's site is kubeadm's; installer tests the command on sites in memory",
		"kubexm etcd add e4 e5 -f config.yaml --bundle demo.tar.zst --key cosign.pub":     "the etcd of this test's site is kubeadm's; installer tests the command on sites in memory",
		"kubexm etcd remove e4 e5 -f config.yaml --dry-run":                               "the etcd of this test's site is kubeadm's; installer tests the command on sites in memory",
		"kubexm etcd remove e4 e5 -f config.yaml --yes":                                   "the etcd of this test's site is kubeadm's; installer tests the command on sites in memory",
		"kubexm etcd remove e2 -f config.yaml --dead --yes --write":                       "the etcd of this test's site is kubeadm's; installer tests the command on sites in memory",
		"kubexm etcd replace e2 -f config.yaml --dry-run":                                 "the etcd of this test's site is kubeadm's; installer tests the command on sites in memory",
		"kubexm etcd replace e2 -f config.yaml --yes":                                     "the etcd of this test's site is kubeadm's; installer tests the command on sites in memory",
		"kubexm bundle sign --attach signed.json demo.tar.zst":                            "cosign makes signed.json; cmd/kubexm's sign.txtar attaches what the library makes",
		"kubexm audit verify --cluster demo --head 4711:9f86d081884c7d65…":                "a head is cut short there, and is of a log with 4711 lines",
		"kubexm bundle verify --trusted-root trusted_root.json --certificate-identity release@example.org --certificate-oidc-issuer https://accounts.example.org demo.tar.zst": "a keyless signature needs Sigstore's services",
	}
}

// TestPrintedLinesRun types every example of every help, and every line of the README
// and the docs that begins with kubexm: those of one source in order, sources that
// leave the site alone beside the others. The hosts, the upstreams and the registries
// are stand-ins; kubexm is the real one.
func TestPrintedLinesRun(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute")
	}
	t.Parallel()
	p := newPrinted(t)
	left, skipped := unrun(), unrun()
	var site, beside, waiting []source
	for _, s := range p.sources() {
		for _, line := range s.lines {
			delete(left, line)
		}
		switch {
		case s.waits() > 0:
			waiting = append(waiting, s.apart()...)
		case s.site():
			site = append(site, s)
		default:
			beside = append(beside, s)
		}
	}
	// Each gate of etcd takes 15 seconds, in which nothing else happens: there are sites beside the
	// first for the sources that wait for them, the longest first.
	waits := make([][]source, 5)
	seconds := make([]int, len(waits))
	slices.SortStableFunc(waiting, func(a, b source) int { return b.waits() - a.waits() })
	for _, s := range waiting {
		i := slices.Index(seconds, slices.Min(seconds))
		waits[i], seconds[i] = append(waits[i], s), seconds[i]+s.waits()
	}
	run := func(t *testing.T, p *printed, s source, cache string) {
		t.Helper()
		t.Run(s.name, func(t *testing.T) {
			dir := p.folder(t, s)
			for _, line := range s.lines {
				if _, ok := skipped[line]; !ok {
					p.typed(t, dir, cache, s.name, line)
				}
			}
		})
	}
	// They mostly wait: more of them run at once than t.Parallel allows.
	var lanes sync.WaitGroup
	lane := func(name string, do func(*testing.T)) { lanes.Go(func() { t.Run(name, do) }) }
	lane("site", func(t *testing.T) {
		for rest := site; len(rest) > 0; {
			next := max(0, slices.IndexFunc(rest, func(s source) bool { return s.none != p.made }))
			if len(rest) == len(site) {
				next = 0 // the README, as a person reads
			}
			s := rest[next]
			rest = slices.Delete(slices.Clone(rest), next, next+1)
			run(t, p, s, "cache")
		}
	})
	for i, all := range waits {
		lane(fmt.Sprintf("waits %d", i+1), func(t *testing.T) {
			p := newPrinted(t)
			for _, s := range all {
				run(t, p, s, "cache")
			}
		})
	}
	lane("elsewhere", func(t *testing.T) {
		for _, s := range beside {
			run(t, p, s, "cache-elsewhere") // one that is being used is not pruned
		}
	})
	lanes.Wait()
	for line := range left {
		t.Errorf("%q is printed no more: take it from the list", line)
	}
}

// source is where lines are printed.
type source struct {
	name    string
	lines   []string
	without []string // of what lies in the folder: it makes them
	fresh   bool     // it brings its own files: nothing lies in the folder but the config
	none    bool     // it begins without a cluster
}

// elsewhere is how lines begin that work on no host and in no workdir.
var elsewhere = regexp.MustCompile(`^(?:KUBEXM_KEY_PASSWORD="[^"]*" )?kubexm (?:bundle|cache|config|keys|man|registry serve|versions?)(?: |$)`)

// site reports whether lines of the source may work on the hosts, or on what is kept of them.
func (s source) site() bool {
	return slices.ContainsFunc(s.lines, func(line string) bool { return !elsewhere.MatchString(line) })
}

// gated are lines that wait for etcd's gates.
var gated = regexp.MustCompile(`^kubexm (?:restart (?:etcd|all)|etcd (?:defrag|alarm .*--disarm))`)

// waits tells about how many seconds the lines of the source wait for etcd's gates.
func (s source) waits() int {
	n := 0
	for _, line := range s.lines {
		switch {
		case !gated.MatchString(line) || strings.Contains(line, "--dry-run"):
		case strings.Contains(line, "defrag"):
			n += 60
		case strings.Contains(line, "restart"):
			n += 30
		default:
			n += 15
		}
	}
	return n
}

// apart gives the examples of a help a folder each, where those of a page are typed in order.
func (s source) apart() []source {
	if strings.HasSuffix(s.name, ".md") {
		return []source{s}
	}
	var all []source
	for _, line := range s.lines {
		one := s
		one.lines = []string{line}
		all = append(all, one)
	}
	return all
}

// sources gives all that prints commands: the README first, as a person reads.
func (p *printed) sources() []source {
	p.t.Helper()
	all := []source{p.document("../../README.md")}
	all[0].fresh, all[0].none = true, true
	p.eachHelp("", func(path, help string) {
		_, examples, _ := strings.Cut(help, "\nExamples:\n")
		examples, _, _ = strings.Cut(examples, "\n\n")
		s := source{name: "kubexm" + path, lines: commandLines(examples)}
		s.none = slices.Contains([]string{"kubexm", "kubexm install", "kubexm create cluster", "kubexm hosts prepare", "kubexm hosts restore"}, s.name)
		s.fresh = s.name == "kubexm" || strings.HasPrefix(s.name, "kubexm keys") || strings.HasPrefix(s.name, "kubexm config")
		s.without = map[string][]string{
			"kubexm bundle split": {"demo.tar.zst.*"}, "kubexm bundle join": {"demo.tar.zst", "new.tar.zst"},
			"kubexm config": {"config.yaml"}, "kubexm config init": {"config.yaml"},
		}[s.name]
		if len(s.lines) > 0 {
			all = append(all, s)
		}
	})
	docs, err := filepath.Glob("../../docs/*.md")
	reference, _ := filepath.Glob("../../docs/reference/*.md") // the pattern is the same but for its folder
	if err != nil || len(docs) < 10 || len(reference) < 10 || len(all) < 30 {
		p.t.Fatalf("%d how-to pages, %d reference pages, %d helps: %v", len(docs), len(reference), len(all), err)
	}
	for _, d := range append(docs, reference...) {
		if s := p.document(d); len(s.lines) > 0 {
			s.without = map[string][]string{"trust.md": {"cosign.*", "signed.json"}, "delta.md": {"delta.tar.zst*", "site.json"}}[s.name]
			all = append(all, s)
		}
	}
	return all
}

func (p *printed) document(path string) source {
	p.t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		p.t.Fatal(err)
	}
	return source{name: filepath.Base(path), lines: commandLines(string(text))}
}

// eachHelp calls do with the help of every command.
func (p *printed) eachHelp(path string, do func(path, help string)) {
	p.t.Helper()
	out, err := exec.CommandContext(p.t.Context(), built.Kubexm(p.t), append(strings.Fields(path), "--help")...).Output()
	if err != nil {
		p.t.Fatalf("%s --help: %v", path, err)
	}
	do(path, string(out))
	_, subs, _ := strings.Cut(string(out), "\nAvailable Commands:\n")
	subs, _, _ = strings.Cut(subs, "\n\n")
	for line := range strings.SplitSeq(subs, "\n") {
		if name, _, _ := strings.Cut(strings.TrimSpace(line), " "); name != "" && name != "completion" && name != "help" {
			p.eachHelp(path+" "+name, do)
		}
	}
}

// begins is where a command of kubexm begins on an indented line.
var begins = regexp.MustCompile(`^\s{2,}(?:[A-Z_]+="[^"]*" |echo [^|]*\| )?kubexm `)

// commandLines are the lines of a text that are commands of kubexm, without comments.
func commandLines(text string) []string {
	var out []string
	text = regexp.MustCompile(`\\\n\s+`).ReplaceAllString(text, "")
	for line := range strings.SplitSeq(text, "\n") {
		if begins.MatchString(line) {
			line, _, _ = strings.Cut(line, " #")
			out = append(out, strings.TrimSpace(line))
		}
	}
	return out
}

// folder makes the folder that a source's lines are typed in.
func (p *printed) folder(t *testing.T, s source) string {
	t.Helper()
	dir := t.TempDir()
	args := []string{"-a", p.base + "/.", dir}
	if s.fresh {
		args = []string{"-a", filepath.Join(p.base, "config.yaml"), dir}
	}
	if out, err := exec.CommandContext(t.Context(), "cp", args...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, name := range s.without {
		all, err := filepath.Glob(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range all {
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.Symlink(filepath.Join(p.workdir, ".kubexm"), filepath.Join(dir, ".kubexm")); err != nil {
		t.Fatal(err)
	}
	switch {
	case !s.site():
	case s.none && p.made:
		p.typed(t, p.base, "cache", "before "+s.name, "kubexm delete cluster -f config.yaml --yes")
	case !s.none && !p.made:
		p.typed(t, p.base, "cache", "before "+s.name, "kubexm install demo.tar.zst --key cosign.pub -f config.yaml --sign-key cosign.key")
	}
	return dir
}

// typed runs a line in a shell.
func (p *printed) typed(t *testing.T, dir, cache, where, line string) {
	t.Helper()
	text := p.standIns(dir, line)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", text)
	cmd.Dir, cmd.SysProcAttr = dir, &syscall.SysProcAttr{Setpgid: true}
	cmd.Env = []string{"PATH=" + p.bin + ":/usr/bin:/bin", "HOME=" + p.root, "KUBEXM_CACHE=" + filepath.Join(p.root, cache), "KUBEXM_WORKDIR=" + p.workdir,
		"KUBEXM_KEY_PASSWORD=open sesame", "KUBEXM_SSH_PASSWORD=" + loginPassword, "PASSWORD=x", "GOGC=" + os.Getenv("GOGC")}
	out, said := &heard{first: make(chan struct{})}, &bytes.Buffer{}
	cmd.Stdout, cmd.Stderr = out, said
	if strings.Contains(line, "registry serve") || strings.Contains(line, "registry login") { // until interrupted
		go func() {
			select {
			case <-out.first: // it is ready
				_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGINT)
			case <-ctx.Done():
			}
		}()
	}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) } // the shell is not all
	if strings.HasPrefix(line, "kubexm health") {
		defer p.certify()()
	}
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && out.all.Len() > 0 { // it was interrupted, or its shell was
		if status, ok := exit.Sys().(syscall.WaitStatus); exit.ExitCode() == 130 || ok && status.Signaled() && status.Signal() == syscall.SIGINT {
			err = nil
		}
	}
	if err != nil {
		t.Errorf("%s: %s\n(typed as %s): %v\n%s", where, line, text, err, clip(said.String()+out.all.String(), 1500))
		return
	}
	p.note(line)
	if strings.HasPrefix(line, "kubexm config init") { // and then the person writes what the hosts are
		text, err := os.ReadFile(filepath.Join(p.base, "config.yaml"))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "config.yaml"), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// clientCertificate is the certificate in a kubeconfig of the simulated kubeadm.
var clientCertificate = regexp.MustCompile(`client-certificate-data: [^,}]+`)

// certify puts a certificate into each file of a node that the simulated kubeadm and kubelet
// fill with words, and returns what undoes that.
func (p *printed) certify() (undo func()) {
	real := steptest.Authority()
	var undone []func()
	for _, h := range p.hosts {
		sim := h.sim
		for _, file := range controlplane.Certificates() {
			was := sim.Read(file)
			if _, err := pki.Certificates([]byte(was)); was == "" || err == nil {
				continue
			}
			text := real
			if strings.HasPrefix(was, "apiVersion:") {
				text = clientCertificate.ReplaceAllString(was, "client-certificate-data: "+base64.StdEncoding.EncodeToString([]byte(real)))
			}
			f, _ := sim.File(file)
			sim.AddFile(file, text, f.Mode)
			undone = append(undone, func() { sim.AddFile(file, was, f.Mode) })
		}
	}
	return func() {
		for _, undo := range undone {
			undo()
		}
	}
}

// note keeps whether there is a cluster after a line.
func (p *printed) note(line string) {
	if strings.Contains(line, "--dry-run") {
		return
	}
	switch begins := func(word string) bool { return strings.HasPrefix(line, word) }; {
	case begins("kubexm install "), begins("kubexm create cluster "):
		p.made = true
	case begins("kubexm delete cluster "), begins("kubexm reset "):
		p.made = false
	}
}

// heard keeps what is written, and tells of the first of it.
type heard struct {
	all   bytes.Buffer
	once  sync.Once
	first chan struct{}
}

func (h *heard) Write(b []byte) (int, error) {
	defer h.once.Do(func() { close(h.first) })
	return h.all.Write(b)
}

// standIns puts what is here in the place of names that are the reader's.
func (p *printed) standIns(dir, line string) string {
	line = strings.NewReplacer("harbor.example/", p.registry+"/", "registry.example/", p.registry+"/", "127.0.0.1:5000/", p.registry+"/", "192.0.2.5:5000", p.registry, "/media/disk/", "").Replace(line)
	for _, kind := range []string{".sigstore.json", ".json"} {
		all, err := filepath.Glob(filepath.Join(p.workdir, ".kubexm/demo/receipts/*"+kind))
		if err == nil && len(all) > 0 {
			line = strings.ReplaceAll(line, ".kubexm/demo/receipts/2026-01-31T08-00-00"+kind, ".kubexm/demo/receipts/"+filepath.Base(all[len(all)-1]))
		}
	}
	return line
}
