package e2e

import (
	"bytes"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/testdata/lab"
	"github.com/mensylisir/kubexm/testdata/lab/components"
)

// starterServices is the range of services in every starter.
const starterServices = "10.233.0.0/18"

// starterVersion is what the lab has, and starters' hosts are written as.
var (
	starterVersion = regexp.MustCompile(`(?m)^(\s+version: )v\S+`)
	starterAddress = regexp.MustCompile(`192\.0\.2\.\d+|2001:db8::\w+`)
	starterUser    = regexp.MustCompile(`(?m)^(\s+user: )ubuntu`)
	starterRun     = regexp.MustCompile(`^ {4}(kubexm \S.*)$`)
)

// balancer is the host that is the site's load balancer in TestStarters.
const balancer = "h7"

// haproxy passes TCP on to API servers that are ready.
const haproxy = `global
    maxconn 2000
defaults
    mode tcp
    timeout connect 5s
    timeout client 1h
    timeout server 1h
    timeout check 3s
frontend api
    bind :6443
    default_backend masters
backend masters
    option httpchk GET /readyz
    default-server check check-ssl verify none inter 1s fall 2 rise 1
`

// TestStarters types the README's lines of a real site for each starter, with the
// lab's hosts, user and version filled in: from `config init` to pods that reach each
// other, a second run that changes nothing, and hosts that are what they were.
func TestStarters(t *testing.T) {
	l := lab.Start(t, 7, lab.WithRoots(lab.Debian12, lab.Debian12, lab.Debian12, lab.Debian12, lab.Debian12, lab.Debian12, lab.Balancer), lab.Alone())
	l.Inside(netip.MustParsePrefix(starterServices))
	cache, err := components.DefaultCache()
	if err != nil {
		t.Fatal(err)
	}
	starters, err := filepath.Glob("../../cmd/kubexm/starters/*.yaml")
	if err != nil || len(starters) < 3 {
		t.Fatalf("%d starters: %v", len(starters), err)
	}
	blobs := t.TempDir() // what one starter asks for, most others do
	for _, file := range starters {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		t.Run(name, func(t *testing.T) {
			s := &labSite{Lab: l, dir: t.TempDir(), cache: cache, lasting: t, blobs: blobs}
			s.typesTheReadme(t, name)
		})
	}
}

// typesTheReadme makes the cluster of a starter, and deletes it again.
func (s *labSite) typesTheReadme(t *testing.T, starter string) {
	t.Helper()
	s.logsIn(t)
	before := s.inventories(t)
	lines := readmeLines(t)
	for i, line := range lines {
		if strings.HasPrefix(line, "kubexm config init") {
			line = strings.Replace(line, "config init", "config init --template "+starter, 1)
		}
		if strings.Contains(line, " delete cluster ") {
			s.isUsed(t, starter)
			said(t, s.typed(t, installLine(lines[:i])), 0, "0 steps ran")
		}
		r := s.typed(t, line)
		if r.code != 0 {
			t.Fatalf("%s: exit %d\n%s%s", line, r.code, r.stdout, r.stderr)
		}
		if strings.HasPrefix(line, "kubexm config init") {
			s.fillsIn(t, starter)
		}
	}
	s.nothingLeft(t)
	if starter == "ha" {
		s.on(t, balancer, "mv /etc/haproxy/haproxy.cfg.was /etc/haproxy/haproxy.cfg; systemctl restart haproxy")
	}
	s.asBefore(t, before)
}

// readmeLines are the commands of kubexm that the README's chapter on a real site has.
func readmeLines(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, chapter, _ := strings.Cut(string(text), "\n## A real site\n")
	chapter, _, _ = strings.Cut(chapter, "\n## ")
	var lines []string
	for line := range strings.SplitSeq(chapter, "\n") {
		if found := starterRun.FindStringSubmatch(line); found != nil {
			line, _, _ = strings.Cut(found[1], " #")
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	if i := slices.IndexFunc(lines, func(l string) bool { return strings.Contains(l, " delete cluster ") }); i >= 0 {
		lines = lines[:i+1] // what follows shows further uses of an archive
	}
	return lines
}

// installLine is the line of lines that makes the cluster; empty where there is none.
func installLine(lines []string) string {
	i := slices.IndexFunc(lines, func(l string) bool {
		return strings.HasPrefix(l, "kubexm install ") && !strings.Contains(l, "--dry-run")
	})
	if i < 0 {
		return ""
	}
	return lines[i]
}

// TestReadmeLines: the chapter has what TestStarters types, from the config to the
// deletion.
func TestReadmeLines(t *testing.T) {
	lines := readmeLines(t)
	begins := func(i int, word string) bool { return strings.HasPrefix(lines[i], "kubexm "+word+" ") }
	if len(lines) < 10 || !begins(0, "keys") || !begins(1, "config init") || installLine(lines) == "" || !begins(len(lines)-1, "delete cluster") {
		t.Errorf("the README's lines are\n%s", strings.Join(lines, "\n"))
	}
}

// logsIn gives the person who types a key that hosts let in, and knows their keys.
func (s *labSite) logsIn(t *testing.T) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(s.dir, ".ssh"), 0o700); err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{s.Key(): "id_ed25519", s.KnownHosts(): "known_hosts"} {
		text, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		s.write(t, filepath.Join(".ssh", to), string(text))
	}
}

// typed runs a line of kubexm in a shell of the site's folder: what asks the internet
// where the stand-ins of it are, and the rest on the workdir host.
func (s *labSite) typed(t *testing.T, line string) result {
	t.Helper()
	line = strings.Replace(line, "kubexm", theProgram(t, s.program), 1)
	var cmd *exec.Cmd
	if strings.Contains(line, "bundle build") {
		line += " --sources " + s.up.paths.Sources + " --versions " + s.up.paths.Versions + " --cache-dir " + s.blobs
		cmd = exec.CommandContext(t.Context(), "/bin/sh", "-c", line)
	} else {
		cmd = s.host().Command(t.Context(), "/bin/sh", "-c", line)
	}
	var out, said bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.dir, &out, &said
	cmd.Env = append(os.Environ(), "HOME="+s.dir, "KUBEXM_KEY_PASSWORD=open sesame")
	if err := cmd.Run(); cmd.ProcessState == nil {
		t.Fatal(err)
	}
	r := result{code: cmd.ProcessState.ExitCode(), stdout: out.String(), stderr: said.String()}
	t.Logf("%s: exit %d\n%s%s", line, r.code, r.stdout, r.stderr)
	return r
}

// fillsIn writes the lab's hosts, user and version into the starter, as its reader
// writes the site's, and the image that the pods of the smoke test run.
func (s *labSite) fillsIn(t *testing.T, starter string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(s.dir, "config.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	hosts := map[string]*lab.Host{"192.0.2.100": &s.Hosts[6]}
	number := func(address string) *lab.Host { // in the order in which they are written
		if hosts[address] == nil {
			used := map[*lab.Host]bool{}
			for _, h := range hosts {
				used[h] = true
			}
			hosts[address] = &s.Hosts[len(used)-1]
		}
		return hosts[address]
	}
	config := starterAddress.ReplaceAllStringFunc(string(text), func(address string) string {
		if six, ok := strings.CutPrefix(address, "2001:db8::"); ok {
			return number("192.0.2." + six).Address6
		}
		return number(address).Address
	})
	config = starterVersion.ReplaceAllString(config, "${1}v1.32.2")
	config = starterUser.ReplaceAllString(config, "${1}ops")
	config += "    images: [lab.test/labtool:v1.0.0]\n" // its last block is spec.bundle
	s.config, s.masters = config, nil
	s.write(t, "config.yaml", config)
	name := regexp.MustCompile(`(?m)^  name: (\S+)`).FindStringSubmatch(config)
	if name == nil {
		t.Fatalf("no name in\n%s", config)
	}
	s.cluster = name[1]
	s.serve(t)
	if starter == "ha" {
		s.startBalancer(t)
	}
}

// startBalancer sets up the site's load balancer as docs/endpoint.md asks.
func (s *labSite) startBalancer(t *testing.T) {
	t.Helper()
	config := haproxy
	for i, h := range s.Hosts[:3] {
		config += fmt.Sprintf("    server master%d %s:6443\n", i+1, h.Address)
	}
	s.on(t, balancer, "cd /etc/haproxy && mv haproxy.cfg haproxy.cfg.was && cat > haproxy.cfg <<'END'\n"+config+"END\nsystemctl restart haproxy && ss -Htln 'sport = :6443' | grep -q .")
}

// isUsed has pods reach each other, and looks for what the starter promises.
func (s *labSite) isUsed(t *testing.T, starter string) {
	t.Helper()
	smoke := lab.Smoke{Lab: s.Lab, Cache: s.cache, Kubeconfig: s.kubeconfig(), Nodes: map[string]int{"single": 1}[starter], Say: func(what string) { t.Log(what) }}
	if err := smoke.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	merged, err := os.ReadFile(filepath.Join(s.dir, ".kube", "config"))
	if err != nil || !strings.Contains(string(merged), s.cluster) {
		t.Errorf("~/.kube/config: %v\n%s", err, merged)
	}
	switch starter {
	case "ha":
		s.goesThroughTheBalancer(t)
	case "dual-stack":
		if got := s.kubectl(t, "get", "nodes", "-o", "jsonpath={.items[*].spec.podCIDRs}"); strings.Count(got, "fd85:ee78:d8a6:") != 3 {
			t.Errorf("the nodes' ranges are %s", got)
		}
	}
	if registry := strings.Contains(s.config, "registry: ["); registry != (starter == "registry") {
		t.Errorf("it has a registry host: %t", registry)
	}
}

// goesThroughTheBalancer stops one master after the other and asks the cluster by the
// address of the load balancer alone.
func (s *labSite) goesThroughTheBalancer(t *testing.T) {
	t.Helper()
	at := s.Hosts[6].Address
	for _, h := range s.Hosts[:6] {
		s.on(t, h.Name, "grep -F '"+at+" ' /etc/hosts | grep -F lb.kubexm.local")
	}
	for i, h := range s.Hosts[:3] {
		s.on(t, h.Name, "mkdir -p /run/away && mv /etc/kubernetes/manifests/kube-apiserver.yaml /run/away/; for i in $(seq 120); do pgrep -x kube-apiserver >/dev/null || exit 0; sleep 1; done; exit 1")
		s.eventually(t, s.Hosts[(i+1)%3].Name, "curl -sfk --max-time 5 https://"+at+":6443/readyz")
		if out, err := s.tryKubectl(t, "get", "nodes", "-o", "name"); err != nil || strings.Count(out, "node/") != 6 {
			t.Errorf("without %s the cluster says %q (%v)", h.Name, out, err)
		}
		s.on(t, h.Name, "mv /run/away/kube-apiserver.yaml /etc/kubernetes/manifests/ && rmdir /run/away")
		s.eventually(t, h.Name, "curl -sfk --max-time 5 https://"+h.Address+":6443/readyz")
	}
}
