package manifest

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// existingDocument returns the page about changes of an existing cluster. The table of fields
// is generated from the code.
func existingDocument() string {
	var b strings.Builder
	b.WriteString(`# Change an existing cluster

Run ` + "`kubexm preflight -f config.yaml [--bundle demo.tar.zst]`" + ` to check whether ` + "`kubexm install`" + ` accepts a changed config. Both commands
compare the config and the bundle with the cluster record. The record is in the cluster (ConfigMap ` + "`kube-system/kubexm`" + `), on every master, and in
` + "`.kubexm/CLUSTER/applied`" + ` below ` + "`--workdir`" + `. The record in the cluster takes precedence ([records](reference/records.md)). A cluster without a record is
not finished: install continues with the config that it gets.

Install refuses every change that it cannot carry out. It does so before it changes anything, with
[exit code](reference/exit-codes.md) 3. The check is called ` + "`preflight.existing-cluster`" + ` and cannot be skipped. Each finding reports the host, the
field, the value in the cluster and the value in the config. A refused config is not recorded.

## Refused changes

- another version of Kubernetes, containerd, etcd, CoreDNS or the network plugin: this version of kubexm cannot upgrade a cluster
- a host of the cluster that the config does not list
- another role for a host of the cluster; new hosts can have any role
- a change of a field that is *refused* in the table below
- a first master without a control plane, if another host, the record or the kubeconfig in ` + "`.kubexm/CLUSTER`" + ` shows that the cluster exists: the
  machine was replaced, and ` + "`kubeadm init`" + ` would create a second cluster

After the last one: reconnect the machine with its disk, or restore the disk from a backup. If the data of the cluster may be
lost: ` + "`kubexm delete cluster`" + `, then ` + "`kubexm install`" + `. If the cluster was deleted from another workdir host, this one still has the record: run
` + "`kubexm delete cluster`" + ` on this workdir host too. This is not needed if that deletion preserved the data: install then uses the data.

## Changes of fields

If two rows match a field, the longer one applies. *Requires* describes what makes a change effective. *Install* is what this version of
kubexm does.

| field | requires | install |
|---|---|---|
`)
	for _, f := range effectRowsOf(ConfigFields()) {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", f.Path, f.Effect.Describe(AnyHosts), f.Install.Describe(f.Effect))
	}
	b.WriteString(`
## Drift: changes made without kubexm

` + "`kubexm diff -f config.yaml`" + ` compares every host with the record, not with the config: files by digest, units, kernel settings and the
cluster's objects. It lists differences by host, with the command that repairs them, and changes nothing. Exit code 0 means that there are no
differences, 3 that there are some or that a host does not answer; the other hosts are compared in any case. ` + "`kubexm install`" + ` with the applied
config and bundle repairs the listed differences. Files are compared with the lock of the applied bundle: that of ` + "`--bundle`" + `, of the archive if it is
still on this machine, or the workdir's copy of the lock. If the bundle is required for a comparison and is not available, the item is listed as not
compared; it does not affect the exit code.

## Hosts that do not answer

` + "`kubexm install`" + ` reports the hosts that it cannot reach, and changes nothing. On a finished cluster, ` + "`--skip-host NAME`" + ` continues without
a host: see [hosts that are down](hosts-down.md).

` + "`kubexm delete cluster`" + ` and ` + "`kubexm reset`" + ` have the same flag:

    kubexm delete cluster -f config.yaml --skip-host w2 --yes

kubexm does not connect to the host. The command reports what remains on it, and stores the host with its applied config in
` + "`.kubexm/CLUSTER/left.json`" + `. The next ` + "`delete cluster`, `reset` or `install`" + ` that reaches the host cleans it first. A control plane host that
comes back still has the old cluster's keys and data: keep it off the network until then, or destroy its disk. With ` + "`--preserve-data`" + ` masters and
etcd members cannot be skipped.

## Delete with another config

` + "`kubexm delete cluster`" + ` and ` + "`kubexm reset`" + ` delete what was applied, even if the config has changed: hosts, roles, types and data folders come from
the record. Addresses and logins come from the config. Without a record, for example after an installation that never finished, the config applies. Things on a
host that it does not describe then remain, with their records in ` + "`/var/lib/kubexm/CLUSTER`" + `. The command lists them and fails. Restore the config
that the cluster was created with, and run the command again.
`)
	return b.String()
}

// effectRowsOf returns the fields that have an effect. A mapping whose fields all have the same
// effect is one row.
func effectRowsOf(f Field) []Field {
	var out []Field
	for _, sub := range f.Fields {
		out = append(out, effectRowsOf(sub)...)
	}
	other := func(than Field) func(Field) bool {
		return func(x Field) bool { return x.Effect != than.Effect || x.Install != than.Install }
	}
	switch {
	case f.Path == "":
		return out
	case !acted(f.Path) || f.Effect == "" && len(f.Fields) == 0:
		return nil
	case len(out) > 1 && !f.List && !f.Map && !slices.ContainsFunc(out, other(out[0])):
		f.Effect, f.Install = out[0].Effect, out[0].Install
		return []Field{f}
	case f.Effect != "": // it applies to fields without their own effect as well
		return append([]Field{f}, slices.DeleteFunc(out, func(x Field) bool { return !other(f)(x) })...)
	}
	return out
}

// TestExistingDocument: docs/existing-cluster.md is up to date; -update writes it.
func TestExistingDocument(t *testing.T) {
	const path = "../docs/existing-cluster.md"
	want := existingDocument()
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil || string(got) != want {
		t.Errorf("%s is out of date: run go test ./manifest -update (%v)", path, err)
	}
}
