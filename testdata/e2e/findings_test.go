package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/steps/connector/sshtest"
	"github.com/mensylisir/kubexm/testdata/upstream"
)

// TestFindingsOfAllHosts looks at three hosts that are not what the config says:
// this machine's shell, of another architecture. Every finding of every host is
// in one table, and in lines of JSON. Both are dry runs: nothing may change here.
func TestFindingsOfAllHosts(t *testing.T) {
	arch := "arm64"
	if runtime.GOARCH == arch {
		arch = "amd64"
	}
	var ports [3]int
	for i := range ports {
		ports[i] = sshtest.Start(t, sshtest.Config{Password: "canary-of-ssh"}).Port
	}
	text := strings.ReplaceAll(cluster("v1.34.10", ports, "", flannel), ", internalAddress", ", arch: "+arch+", hostKeyPolicy: accept-new, internalAddress")
	config := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s := openSite(t, config, upstream.Options{Scale: 0.001}, false)
	archive := filepath.Join(s.dir, "x.tar.zst")
	s.must(t, s.pin()...)
	s.must(t, s.build(archive, s.newFolder(t, "cache"))...)
	install := func(more ...string) result {
		return s.run(t, append([]string{"install", "--dry-run", "--allow-unsigned", "--workdir", s.dir, "--bundle", archive, "-f", config}, more...), "SSH_PASSWORD=canary-of-ssh")
	}
	r := install()
	said(t, r, 3, "on 3 of 3 hosts", "HOST", "error    r1, m1, w1  architecture", "the config has "+arch, "build the bundle again",
		"next: nothing was changed; fix the findings", filepath.Join(".kubexm", "refused", "runs"))
	if r.stdout != "" || strings.Contains(r.stderr, "canary-of-ssh") || strings.Contains(r.stderr, "would run") {
		t.Errorf("standard output:\n%s\nstandard error:\n%s", r.stdout, r.stderr)
	}

	r = install("-o", "json")
	found := map[string]int{}
	var last struct {
		Type, Host, Severity, Message string
		Summary                       struct {
			ExitCode int
			Skipped  []string
			Journal  string
			Steps    struct{ Ran, Would, Failed int }
		}
	}
	for line := range strings.Lines(r.stdout) {
		last.Type, last.Host = "", ""
		if err := json.Unmarshal([]byte(line), &last); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if last.Type == "finding" && last.Severity == "error" && strings.Contains(last.Message, "the config has "+arch) {
			found[last.Host]++
		}
	}
	if got := fmt.Sprint(found); r.code != 3 || got != "map[m1:1 r1:1 w1:1]" || last.Type != "summary" || last.Summary.ExitCode != 3 ||
		last.Summary.Steps.Ran+last.Summary.Steps.Would != 0 || last.Summary.Steps.Failed < 3 {
		t.Errorf("exit %d, %s, %+v\n%s", r.code, got, last, r.stdout)
	}

	// The command that only looks finds the same, and tells it on standard output. What
	// is left out is said, and stands in the journal.
	look := func(more ...string) result {
		return s.run(t, append([]string{"preflight", "--allow-unsigned", "--workdir", s.dir, "-f", config}, more...), "SSH_PASSWORD=canary-of-ssh")
	}
	r = look("--bundle", archive)
	said(t, r, 3, "error    r1, m1, w1  architecture", "; nothing was changed")
	if r.stderr != "" && strings.Contains(r.stderr, "architecture") || !strings.Contains(r.stdout, "architecture") {
		t.Errorf("standard output:\n%s\nstandard error:\n%s", r.stdout, r.stderr)
	}
	r = look("--skip", "architecture,preflight.duplicates")
	said(t, r, 3, "skipped: architecture, duplicates", "not checked without a bundle")
	if strings.Contains(r.stdout, "the config has "+arch) {
		t.Errorf("what was left out was looked at:\n%s", r.stdout)
	}
	r = install("--skip-checks", "architecture", "-o", "json")
	if err := json.Unmarshal([]byte(r.stdout[strings.LastIndexByte(strings.TrimSpace(r.stdout), '\n')+1:]), &last); err != nil {
		t.Fatal(err)
	}
	journal, err := os.ReadFile(last.Summary.Journal)
	if err != nil {
		t.Fatal(err)
	}
	if head, _, _ := strings.Cut(string(journal), "\n"); strings.Join(last.Summary.Skipped, " ") != "preflight.architecture" || !strings.Contains(head, `"skipped":["preflight.architecture"]`) {
		t.Errorf("%+v\n%s", last, head)
	}

	// Without the password none is reached, for one and the same reason.
	wrong := s.run(t, []string{"install", "--dry-run", "--allow-unsigned", "--workdir", s.dir, "--bundle", archive, "-f", config}, "SSH_PASSWORD=another")
	said(t, wrong, 3, "refused", "error  r1    connectivity", "check user, password", "next: nothing was changed on any host")
}
