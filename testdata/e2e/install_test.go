package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mensylisir/kubexm/testdata/upstream"
)

// cluster is a config of three hosts at ports of this machine; rest goes at the end.
func cluster(version string, ports [3]int, worker, rest string) string {
	return fmt.Sprintf(`apiVersion: kubexm.mensylisir.io/v1alpha1
kind: Cluster
metadata: {name: refused}
spec:
  hosts:
    - {name: r1, address: 127.0.0.1, port: %d, internalAddress: 192.0.2.10}
    - {name: m1, address: 127.0.0.1, port: %d, internalAddress: 192.0.2.11}
    - {name: w1, address: 127.0.0.1, port: %d, internalAddress: 192.0.2.21%s}
  ssh: {user: root, password: "${env:SSH_PASSWORD}"}
  roleGroups: {registry: [r1], master: [m1], worker: [w1]}
  kubernetes: {version: %s}
  etcd: {type: kubeadm}
%s`, ports[0], ports[1], ports[2], worker, version, rest)
}

const flannel = "  network: {plugin: flannel}\n"

// closed gives ports of this machine that nobody listens on.
func closed(t *testing.T) (ports [3]int) {
	t.Helper()
	for i := range ports {
		l := listen(t)
		ports[i] = port(l)
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return ports
}

func listen(t testing.TB) net.Listener {
	t.Helper()
	var lc net.ListenConfig
	l, err := lc.Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func port(l net.Listener) int {
	a, _ := l.Addr().(*net.TCPAddr)
	return a.Port
}

func (s *site) write(t testing.TB, name, text string) string {
	t.Helper()
	path := filepath.Join(s.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// said ends the test where a run did not end with code and all of words.
func said(t testing.TB, r result, code int, words ...string) {
	t.Helper()
	if r.code != code {
		t.Fatalf("exit %d, want %d\n%s%s", r.code, code, r.stdout, r.stderr)
	}
	for _, w := range words {
		if !strings.Contains(r.stdout+r.stderr, w) {
			t.Errorf("%q was not said:\n%s%s", w, r.stdout, r.stderr)
		}
	}
}

// TestWhatInstallRefuses holds one bundle against configs that it does not do
// for, and against hosts that do not answer.
func TestWhatInstallRefuses(t *testing.T) {
	const version = "v1.34.10"
	dir := t.TempDir()
	config := filepath.Join(dir, "config.yaml")
	if err := os.WriteFile(config, []byte(cluster(version, closed(t), "", flannel)), 0o600); err != nil {
		t.Fatal(err)
	}
	s := openSite(t, config, upstream.Options{Scale: 0.001}, false)
	archive := filepath.Join(s.dir, "x.tar.zst")
	s.must(t, s.pin()...)
	s.must(t, s.build(archive, s.newFolder(t, "cache"))...)

	// Somebody listens at every host's port, and must never be called.
	var calls atomic.Int64
	var open [3]int
	for i := range open {
		l := listen(t)
		defer l.Close()
		open[i] = port(l)
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				calls.Add(1)
				c.Close()
			}
		}()
	}
	arm := s.write(t, "arm.yaml", cluster(version, open, ", arch: arm64", flannel))
	newer := s.write(t, "newer.yaml", cluster("v1.33.1", open, "", flannel))
	ha := s.write(t, "docker.yaml", cluster(version, open, "", flannel+"  runtime: {type: docker}\n"))
	good := s.write(t, "good.yaml", cluster(version, open, "", flannel))

	check := func(args ...string) result {
		return s.run(t, append([]string{"bundle", "check", "--allow-unsigned"}, args...))
	}
	said(t, check(archive), 0, "complete for cluster refused, Kubernetes "+version)
	said(t, check("-f", good, archive), 0, "complete")
	said(t, check("--unused", archive), 0, "0 artifacts that no plan needs")
	lacks := []string{
		"error: the bundle lacks", "binary kubelet for linux/arm64: step kubeadm.install on w1", "image pause for linux/arm64",
		"try   build the bundle from this config",
	}
	said(t, check("-f", arm, archive), 4, lacks...)
	said(t, check("-f", newer, archive), 4, "the config requires Kubernetes v1.33.1, the bundle contains "+version)
	r := check("-f", arm, "-o", "json", archive)
	var answer struct {
		Lacks []struct {
			Need  struct{ Name string }
			Hosts []string
		}
	}
	if err := json.Unmarshal([]byte(r.stdout), &answer); err != nil || len(answer.Lacks) < 10 || r.code != 4 {
		t.Errorf("exit %d, %v, %+v", r.code, err, answer)
	}
	if r := s.run(t, []string{"bundle", "check", archive}); r.code != 4 {
		t.Errorf("nobody vouches for the bundle, and it was taken: exit %d", r.code)
	}

	install := func(args ...string) result {
		return s.run(t, append([]string{"install", "--workdir", s.dir, "--bundle", archive}, args...), "SSH_PASSWORD=canary-of-ssh")
	}
	said(t, install("-f", good), 4, "--allow-unsigned")
	said(t, install("--allow-unsigned", "-f", arm), 4, lacks...)
	said(t, install("--allow-unsigned", "-f", newer), 4, "the config requires Kubernetes v1.33.1")
	said(t, install("--allow-unsigned", "-f", ha), 2, "spec.runtime.type: docker cannot be installed yet", "only containerd")
	said(t, s.run(t, []string{"install", "--allow-unsigned", "--bundle", archive, "--workdir", s.dir}), 2,
		"spec.ssh.password: refers to the environment variable SSH_PASSWORD, which a config in a bundle must not read", "-f")
	said(t, s.run(t, []string{"install", "--allow-unsigned", "--bundle", archive, "--workdir", s.dir, "-f", good}), 2,
		"spec.hosts[0].password", "spec.hosts[1].password", "spec.hosts[2].password", "SSH_PASSWORD is not set")
	said(t, s.run(t, []string{"delete", "cluster", "-f", good, "--workdir", s.dir}), 2, "destroys it", "add --yes to confirm")
	if n := calls.Load(); n != 0 {
		t.Errorf("hosts were called %d times", n)
	}

	// The bundle does, and no host answers: each is named.
	away := s.write(t, "away.yaml", cluster(version, closed(t), "", flannel))
	r = install("--allow-unsigned", "-f", away)
	said(t, r, 3, "error  m1    connectivity", "error  r1    connectivity", "error  w1    connectivity", "connection refused", "check that sshd runs")
	if strings.Contains(r.stdout+r.stderr, "canary-of-ssh") {
		t.Error("a password was shown")
	}
}

// TestBuildPlansBeforeItFetches: a config whose plans need what its bundle would
// not hold ends before anybody is asked.
func TestBuildPlansBeforeItFetches(t *testing.T) {
	dir := t.TempDir()
	config := filepath.Join(dir, "config.yaml")
	// The platforms are written, and one of a host's is not among them.
	text := cluster("v1.34.10", closed(t), ", arch: arm64", flannel+"  bundle: {platforms: [linux/amd64]}\n")
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s := &site{dir: dir}
	said(t, s.run(t, []string{"bundle", "build", "-f", config, "--dry-run"}), 2, "arm64", "platforms")
}
