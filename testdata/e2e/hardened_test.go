package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/testdata/lab"
)

// hardened holds a cluster that runs against the table that docs/reference/hardening.md is
// written from: what its processes were started with, what its kubelets say of
// themselves, modes of files, kernel settings, ports, and what is refused.
func (s *labSite) hardened(t testing.TB, c hardenedCluster) {
	t.Helper()
	held := map[string]int{}
	table := slices.DeleteFunc(part.Settings(), func(st manifest.Setting) bool { return slices.Contains(c.others, st.Of+" "+st.Name) })
	for _, st := range table {
		held[st.Of]++
	}
	seen := map[string]int{} // files, by the row that means them
	for _, h := range c.nodes {
		s.hostIsHardened(t, h, c, table, seen)
	}
	for _, st := range table {
		if st.Of == manifest.OfFile && seen[st.Name] == 0 && !strings.Contains(st.Name, "/etcd") { // a row for nothing
			t.Errorf("%s is on no host", st.Name)
		}
	}
	t.Logf("held against the table: %v", held)
	s.secretsAreSealed(t, c)
	s.podsAreHeldBack(t, c)
	s.isWrittenDown(t, c)
}

// hostIsHardened asks one host for everything at once: a login and a process for
// each row took a minute.
func (s *labSite) hostIsHardened(t testing.TB, h string, c hardenedCluster, table []manifest.Setting, seen map[string]int) {
	t.Helper()
	kubelet := s.kubeletConfig(t, h)
	ask := map[string]string{"listens": "ss -H -tlnp", "kubelet": status("https://127.0.0.1:10250/pods")}
	for _, st := range table {
		switch st.Of {
		case manifest.OfKernel:
			ask[st.Name] = "sysctl -n " + st.Name
		case manifest.OfFile:
			ask[st.Name] = "stat -c '%F|%04a %U:%G %n' " + st.Name + " 2>/dev/null || true"
		case manifest.OfKubelet:
		default:
			if c.runs(st.Of, h) {
				ask[st.Of] = "tr '\\0' ' ' < /proc/$(pgrep -xo " + st.Of[:min(15, len(st.Of))] + ")/cmdline"
			}
		}
	}
	if slices.Contains(c.masters, h) {
		for url := range anonymous {
			ask[url] = status("https://127.0.0.1:6443" + url)
		}
		for cipher := range ciphers {
			ask[cipher] = "curl -sk --tls-max 1.2 --ciphers " + cipher + " --max-time 10 https://127.0.0.1:6443/livez >/dev/null && echo taken || echo refused"
		}
	}
	got := s.askAll(t, h, ask)

	for _, st := range table {
		switch st.Of {
		case manifest.OfKubelet:
			kubeletIs(t, h, kubelet, st)
		case manifest.OfKernel:
			if is := strings.Join(strings.Fields(got[st.Name]), " "); is != st.Value {
				t.Errorf("%s: %s is %s and not %s", h, st.Name, is, st.Value)
			}
		case manifest.OfFile:
			seen[st.Name] += filesAre(t, h, got[st.Name], st)
		default:
			words := strings.Fields(got[st.Of])
			if c.runs(st.Of, h) && !slices.ContainsFunc(words, func(w string) bool { return runsWith(w, st) }) {
				t.Errorf("%s on %s runs without --%s=%s: %q", st.Of, h, st.Name, st.Value, words)
			}
		}
	}
	listens(t, h, got["listens"])
	if got["kubelet"] != "401" {
		t.Errorf("the kubelet of %s tells nobody %s", h, got["kubelet"])
	}
	if slices.Contains(c.masters, h) {
		for url, want := range anonymous {
			if got[url] != want {
				t.Errorf("%s: nobody is told %s of %s, and not %s", h, got[url], url, want)
			}
		}
		for cipher, want := range ciphers {
			if got[cipher] != want {
				t.Errorf("%s: %s is %s", h, cipher, got[cipher])
			}
		}
	}
}

// anonymous is how an API server answers who has no name.
var anonymous = map[string]string{
	"/livez": "200", "/readyz": "200", "/api": "401", "/version": "401", "/api/v1/namespaces/kube-system/secrets": "401",
	"/api/v1/namespaces/kube-public/configmaps/cluster-info": "200",
}

// ciphers are two that an API server is offered. The second is one that Go itself
// takes.
var ciphers = map[string]string{"ECDHE-RSA-AES128-GCM-SHA256": "taken", "ECDHE-RSA-AES128-SHA": "refused"}

// status is a command that prints how a URL answers who has no name.
func status(url string) string { return "curl -sk -o /dev/null -w '%{http_code}' --max-time 10 " + url }

// askAll runs commands on a host in one login, and gives what each of them says.
func (s *labSite) askAll(t testing.TB, host string, commands map[string]string) map[string]string {
	t.Helper()
	h, err := s.Host(host)
	if err != nil {
		t.Fatal(err)
	}
	names := slices.Sorted(maps.Keys(commands))
	var script strings.Builder
	for _, name := range names {
		fmt.Fprintf(&script, "printf '\\036'\n(%s\n) 2>&1 || echo \"ended with $?\"\n", commands[name])
	}
	ssh := s.SSH(t.Context(), h, lab.RootUser, "bash -s")
	ssh.Stdin = strings.NewReader(script.String())
	out, err := ssh.Output()
	parts := strings.Split(string(out), "\036")
	if err != nil || len(parts) != len(names)+1 {
		t.Fatalf("%s gave %d answers to %d questions (%v)", host, len(parts)-1, len(names), err)
	}
	said := map[string]string{}
	for i, name := range names {
		said[name] = strings.TrimSpace(parts[i+1])
	}
	return said
}

// hardenedCluster says where to look, and what its config has otherwise.
type hardenedCluster struct {
	nodes, masters, etcd []string
	others               []string // "kube-apiserver profiling": what extraArgs say otherwise
	etcdctl              string   // asks the store, on the first of etcd
}

// runs reports whether a component runs on a host.
func (c hardenedCluster) runs(component, host string) bool {
	if component == manifest.OfEtcd {
		return slices.Contains(c.etcd, host)
	}
	return slices.Contains(c.masters, host)
}

// runsWith reports whether a word of a command line is the setting's. A list of
// plug-ins may have more of them.
func runsWith(word string, s manifest.Setting) bool {
	name, value, _ := strings.Cut(strings.TrimLeft(word, "-"), "=")
	return name == s.Name && (value == s.Value || name == "enable-admission-plugins" && slices.Contains(strings.Split(value, ","), s.Value))
}

// kubeletConfig asks a kubelet for what it goes by.
func (s *labSite) kubeletConfig(t testing.TB, node string) map[string]any {
	t.Helper()
	var doc struct {
		KubeletConfig map[string]any `json:"kubeletconfig"`
	}
	if err := json.Unmarshal([]byte(s.kubectl(t, "get", "--raw", "/api/v1/nodes/"+node+"/proxy/configz")), &doc); err != nil {
		t.Fatal(err)
	}
	return doc.KubeletConfig
}

func kubeletIs(t testing.TB, node string, config map[string]any, st manifest.Setting) {
	t.Helper()
	var at any = config
	for key := range strings.SplitSeq(st.Name, ".") {
		m, _ := at.(map[string]any)
		at = m[key]
	}
	got, err := json.Marshal(at)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer(`"`, "", "[", "", "]", "").Replace(string(got))
	if text == "null" && (st.Value == "0" || st.Value == "false") { // what is so and not written is left out
		return
	}
	if text != st.Value {
		t.Errorf("the kubelet of %s has %s %s and not %s", node, st.Name, text, st.Value)
	}
}

// filesAre looks at every file of a host that a row means, and counts them.
func filesAre(t testing.TB, host, lines string, st manifest.Setting) (seen int) {
	t.Helper()
	for line := range strings.Lines(lines) {
		kind, rest, _ := strings.Cut(strings.TrimSpace(line), "|")
		if strings.Contains(path.Base(st.Name), "*") && kind == "directory" {
			continue
		}
		seen++
		if !strings.HasPrefix(rest, st.Value+" root:root ") {
			t.Errorf("%s: %s, and not %s root:root", host, rest, st.Value)
		}
	}
	return seen
}

// listens looks at the ports of a host.
func listens(t testing.TB, host, lines string) {
	t.Helper()
	if !strings.Contains(lines, ":10250") {
		t.Errorf("no kubelet listens on %s:\n%s", host, lines)
	}
	for line := range strings.Lines(lines) {
		f := strings.Fields(line)
		if len(f) < 4 {
			t.Fatalf("ss says %q", line)
		}
		at := strings.LastIndexByte(f[3], ':')
		address, port := f[3][:at], f[3][at+1:]
		switch port {
		case "10255", "8080":
			if strings.Contains(line, "kube") {
				t.Errorf("%s answers everybody: %s", host, line)
			}
		case "10257", "10259", "10248", "10249":
			if address != "127.0.0.1" && address != "[::1]" {
				t.Errorf("%s serves others than itself: %s", host, line)
			}
		}
	}
}

// secretsAreSealed writes a Secret and reads it as it lies in the store, and
// through each API server.
func (s *labSite) secretsAreSealed(t testing.TB, c hardenedCluster) {
	t.Helper()
	const plain = "nobody-reads-this-in-etcd"
	s.kubectl(t, "create", "secret", "generic", "sealed", "--from-literal=word="+plain)
	raw := s.on(t, c.etcd[0], c.etcdctl+" get --print-value-only /registry/secrets/default/sealed | tr -cd '[:print:]'")
	if !strings.HasPrefix(raw, "k8s:enc:secretbox:v1:kubexm-1:") || strings.Contains(raw, plain) {
		t.Errorf("in etcd a Secret is %.80q", raw)
	}
	for _, h := range c.masters {
		if got := s.master(t, h, "get secret sealed -o jsonpath={.data.word} | base64 -d"); got != plain {
			t.Errorf("%s reads %q", h, got)
		}
	}
	sums := map[string]bool{}
	for _, h := range c.masters {
		sums[s.on(t, h, "sha256sum < "+manifest.EncryptionConfig)] = true
	}
	if len(sums) != 1 {
		t.Errorf("masters have %d keys", len(sums))
	}
	s.kubectl(t, "delete", "secret", "sealed")
}

const wild = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"wild","namespace":"fresh"},"spec":{"containers":[{"name":"c","image":"lab.test/labtool:v1.0.0","command":["labtool","serve",":8080"],"securityContext":{"privileged":true}}]}}`

// podsAreHeldBack tries a pod that may do anything, and one that may do little.
func (s *labSite) podsAreHeldBack(t testing.TB, c hardenedCluster) {
	t.Helper()
	s.kubectl(t, "create", "namespace", "fresh")
	for _, h := range c.masters {
		run := func(pod, flags string) string {
			return s.on(t, h, atHome+"echo '"+pod+"' | "+kubectl+"create "+flags+" -f - 2>&1 || true")
		}
		if got := run(wild, ""); !strings.Contains(got, `violates PodSecurity "baseline:latest": privileged`) {
			t.Errorf("%s: a privileged pod in a new namespace: %s", h, got)
		}
		if got := run(strings.Replace(wild, `"privileged":true`, `"privileged":false`, 1), "--dry-run=server"); !strings.Contains(got, "pod/wild created") || !strings.Contains(got, `would violate PodSecurity "restricted:latest"`) {
			t.Errorf("%s: a plain pod in a new namespace: %s", h, got)
		}
		if got := run(strings.Replace(wild, "fresh", "kube-system", 1), "--dry-run=server"); !strings.Contains(got, "pod/wild created") {
			t.Errorf("%s: a pod of the cluster's own: %s", h, got)
		}
	}
	s.kubectl(t, "delete", "namespace", "fresh", "--wait=false")
}

// isWrittenDown looks into the audit logs for what was done above.
func (s *labSite) isWrittenDown(t testing.TB, c hardenedCluster) {
	t.Helper()
	var all []string
	for _, h := range c.masters {
		lines := s.on(t, h, "grep -h -e '\"resource\":\"secrets\",\"namespace\":\"default\",\"name\":\"sealed\"' "+manifest.AuditDir+"/audit.log || true; test -s "+manifest.AuditDir+"/audit.log || echo empty")
		if strings.Contains(lines, "empty") {
			t.Errorf("%s writes nothing down", h)
			continue
		}
		if lines == "" { // another API server was asked
			continue
		}
		all = append(all, strings.Split(strings.TrimSpace(lines), "\n")...)
	}
	for _, line := range all {
		var e struct{ Level, Verb string }
		if err := json.Unmarshal([]byte(line), &e); err != nil || e.Level != "Metadata" {
			t.Errorf("%s (%v)", line, err)
		}
		if strings.Contains(line, "nobody-reads") || strings.Contains(line, "requestObject") {
			t.Errorf("a log has what is secret: %s", line)
		}
	}
	if len(all) < 2 {
		t.Errorf("the audit logs have %d lines of a Secret that was made, read and deleted", len(all))
	}
}
