package preflight_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/steps/preflight"
	"github.com/mensylisir/kubexm/versions"
)

var update = flag.Bool("update", false, "rewrite docs/reference/preflight.md")

// document returns the page about the checks: all that differs from check to check comes
// from the code.
func document(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString(`# Preflight checks

` + "`kubexm preflight -f config.yaml [--bundle demo.tar.zst]`" + ` connects to every host of a config and checks all of them in parallel. It
prints all findings in one table and changes nothing. ` + "`kubexm install`" + ` and ` + "`create cluster`" + ` make the same checks first, and change
nothing while there is an error.

| level | meaning |
|---|---|
| error | nothing is changed on any host; the command ends with [exit code](exit-codes.md) 3 |
| warning | reported only: something will be slow, or kubexm will change it |
| note | reported only: no action is needed |

Identical findings of a check on several hosts are one row of the table. With ` + "`-o json`" + ` each finding is a separate line of
type ` + "`finding`" + ` with ` + "`step`" + ` (the check's name), ` + "`host`, `severity`, `message` and `advice`" + `;
[run events](run-events.md) describes the fields. The names of checks are stable from version to version.

` + "`--skip-checks`" + ` skips checks by name: ` + "`kubexm preflight --skip-checks memory,ports`, `kubexm install --skip-checks memory,ports`" + `. The
skipped checks are printed, and listed in the first line of the run's journal (` + "`skipped`" + `) and in the summary of ` + "`-o json`" + `. The prefix
` + "`preflight.`" + ` of a name is optional. Without ` + "`--bundle`" + ` a note lists the checks that could not be made.

kubexm reads the facts of each host with one command. To test connections between hosts it uses their SSH servers (direct-tcpip
forwarding, as ` + "`ssh -W`" + ` does): nothing has to be installed, and no data is sent.

## Connection

| check | checks | level | note |
|---|---|---|---|
| ` + "`" + preflight.Connectivity + "`" + ` | whether the host answers, its host key is trusted, and the user is authenticated | error | a host that cannot be reached is a finding like others; this check cannot be skipped |
| ` + "`" + preflight.Sudo + "`" + ` | whether the user becomes root on the host, by sudo without a password or with sudoPassword | error | this check cannot be skipped |

## Hosts

| check | checks | level | limits | reads on the host | source of the limits, or reason |
|---|---|---|---|---|---|
`)
	for _, c := range preflight.Checks() {
		asks := c.Question
		switch {
		case c.Endpoint:
			asks += "; on masters and workers, with spec.loadBalancer.external.type external or controlPlaneEndpoint.externalDNS"
		case c.On == preflight.OnNodes:
			asks += "; on masters and workers"
		case c.On == preflight.OnBalancers:
			asks += "; on load balancer hosts, and on masters with kube-vip"
		case c.Packages:
			asks += "; where the bundle has packages"
		case c.Bundle:
			asks += "; with a bundle"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s |\n", c.Name, asks, c.Levels, c.Limits, c.Reads, c.Source)
	}
	b.WriteString(`
In addition, ` + "`etcd.check-external`, `etcd.check-keys`, `registryd.check-pull`, `registryd.check-push` and `kubeadm.check-kept-store`" + `
check an existing etcd or registry, and data that a deletion preserved. To skip them, use their full names.
` + "`preflight.existing-cluster`" + ` protects [an existing cluster](../existing-cluster.md). It cannot be skipped.

## Operating systems

A release includes its minor versions: 9 is 9.0 to 9.n. The table is ` + "`versions/supported.yaml`" + `.

| ID in /etc/os-release | distribution | releases |
|---|---|---|
`)
	all, err := versions.Supported()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", s.ID, s.Name, strings.Join(s.Releases, ", "))
	}
	return b.String()
}

// TestDocument: docs/reference/preflight.md matches the checks; -update rewrites it.
func TestDocument(t *testing.T) {
	const path = "../../docs/reference/preflight.md"
	want := document(t)
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil || string(got) != want {
		t.Errorf("%s does not match the checks: go test ./steps/preflight -update rewrites it (%v)", path, err)
	}
}

// TestChecksAreDescribed: each check has a unique name, and a text for each column of the
// document.
func TestChecksAreDescribed(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range preflight.Checks() {
		if seen[c.Name] || !strings.HasPrefix(c.Name, "preflight.") || c.Question == "" || c.Levels == "" || c.Limits == "" || c.Reads == "" || c.Source == "" {
			t.Errorf("%+v", c)
		}
		seen[c.Name] = true
		if m := c.Step(preflight.Options{}).Meta(); m.Name != c.Name || !m.ReadOnly || !m.Always || m.Timeout <= 0 {
			t.Errorf("%+v", m)
		}
	}
}
