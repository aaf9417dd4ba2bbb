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

var update = flag.Bool("update", false, "write docs/preflight.md anew")

// document is what users read of the checks: all that differs from check to check
// comes from the code.
func document(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString(`# The checks before anything is changed

` + "`kubexm preflight -f config.yaml [--bundle demo.tar.zst]`" + ` reaches every host of a config, looks at all of them at once, and tells
everything that it holds against them in one table. It changes nothing. ` + "`kubexm install`" + ` and ` + "`create cluster`" + ` make the very
same checks first, and change nothing while there is an error.

| level | meaning |
|---|---|
| error | nothing is changed on any host; the command ends with [exit code](exit-codes.md) 3 |
| warning | said, and passed: something will be slow, or is going to be changed by kubexm |
| note | said; nobody has to do anything |

Findings of a check that are the same on several hosts are one row of the table. With ` + "`-o json`" + ` each is a line of its
own, of the type ` + "`finding`" + ` with ` + "`step`" + ` (the check's name), ` + "`host`, `severity`, `message` and `advice`" + `;
[run events](run-events.md) has the fields. The names of checks stay as they are from version to version.

Checks are left out by name: ` + "`kubexm preflight --skip-checks memory,ports`, `kubexm install --skip-checks memory,ports`" + `. What was left
out is said, stands in the first line of the run's journal (` + "`skipped`" + `) and in the summary of ` + "`-o json`" + `. The names may be
written with or without ` + "`preflight.`" + ` before them. Without ` + "`--bundle`" + ` a note says which checks could not be made.

Hosts are asked what they are by one command each. Whether they reach each other is tried through their own SSH servers
(direct-tcpip, as ` + "`ssh -W`" + ` does it): nothing has to be installed for it, and no data is sent.

## Reached at all

| check | asks | level | source |
|---|---|---|---|
| ` + "`" + preflight.Connectivity + "`" + ` | whether the host answers, its key is trusted, and the user is let in | error | a host that is not reached is a finding like others; it cannot be left out |
| ` + "`" + preflight.Sudo + "`" + ` | whether the user becomes root there, by sudo without a password or with sudoPassword | error | the same |

## Looked at

| check | asks | level | limits | reads on the host | where the limits come from |
|---|---|---|---|---|---|
`)
	for _, c := range preflight.Checks() {
		asks := c.Asks
		switch {
		case c.Endpoint:
			asks += "; on masters and workers, with spec.loadBalancer.external.type external or controlPlaneEndpoint.externalDNS"
		case c.On == preflight.OnNodes:
			asks += "; on masters and workers"
		case c.Packages:
			asks += "; where the bundle has packages"
		case c.Bundle:
			asks += "; with a bundle"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s |\n", c.Name, asks, c.Levels, c.Limits, c.Reads, c.Source)
	}
	b.WriteString(`
Beside these, ` + "`etcd.check-external`, `etcd.check-keys`, `registryd.check-pull`, `registryd.check-push` and `kubeadm.check-kept-store`" + `
look at an etcd or a registry that stands already, and at data that a deletion left. They are left out by their full names.
` + "`preflight.existing-cluster`" + ` keeps [a cluster that exists](existing-cluster.md) from harm. It cannot be left out.

## Operating systems

A release stands for its minor versions: 9 is 9.0 to 9.n. The table is ` + "`versions/supported.yaml`" + `.

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

// TestDocument: docs/preflight.md says what the code does; -update writes it.
func TestDocument(t *testing.T) {
	const path = "../../docs/preflight.md"
	want := document(t)
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil || string(got) != want {
		t.Errorf("%s is not what the checks are: go test ./steps/preflight -update writes it anew (%v)", path, err)
	}
}

// TestChecksAreDescribed: each has a name of its own, and says all that the document
// has columns for.
func TestChecksAreDescribed(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range preflight.Checks() {
		if seen[c.Name] || !strings.HasPrefix(c.Name, "preflight.") || c.Asks == "" || c.Levels == "" || c.Limits == "" || c.Reads == "" || c.Source == "" {
			t.Errorf("%+v", c)
		}
		seen[c.Name] = true
		if m := c.Step(preflight.Options{}).Meta(); m.Name != c.Name || !m.LooksOnly || !m.Always || m.Timeout <= 0 {
			t.Errorf("%+v", m)
		}
	}
}
