package manifest

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// existingDocument is what users read of configs that change: which fields, comes from
// the code.
func existingDocument() string {
	var b strings.Builder
	b.WriteString(`# A cluster that exists

Type ` + "`kubexm preflight -f config.yaml [--bundle demo.tar.zst]`" + ` to see whether ` + "`kubexm install`" + ` takes a changed config. Both hold the config and
the bundle against the record of what was applied. The record is in the cluster (ConfigMap ` + "`kube-system/kubexm`" + `), on every master and in
` + "`.kubexm/CLUSTER/applied`" + ` below ` + "`--workdir`" + `; the cluster's own counts first ([records](records.md)). A cluster without a record is not
finished: install goes on with whatever config it gets.

Install changes a cluster only where it carries the change out. It refuses the rest before anything is changed, with
[exit code](exit-codes.md) 3. The check is called ` + "`preflight.existing-cluster`" + ` and cannot be left out. Each finding names the host, the
field, the value in the cluster and the value in the config. Nothing that was refused gets on record.

## What is refused

- another version of Kubernetes, containerd, etcd, CoreDNS or the network plugin: this version of kubexm upgrades no cluster
- a host that the cluster has and the config does not name
- another role for a host of the cluster; new hosts get any role
- a change of a field that is *refused* below
- a first master without a control plane, where another host, the record or the kubeconfig in ` + "`.kubexm/CLUSTER`" + ` knows the cluster: its
  machine was replaced, and ` + "`kubeadm init`" + ` would make a second cluster beside the first

After the last one: bring the machine back with its disk, or restore the disk from a backup. If the data of the cluster may be
lost: ` + "`kubexm delete cluster`" + `, then ` + "`kubexm install`" + `. If the cluster was deleted from another workdir host, this one still has the record: run
` + "`kubexm delete cluster`" + ` here too. This is not needed if that deletion preserved the data: install then uses the data.

## What install does with a changed field

Of two rows that match a field, the longer one counts. *What it takes* says what has to be done for a change to take hold; what
install refuses of that, this version of kubexm does not do.

| field | what it takes | install |
|---|---|---|
`)
	for _, f := range effectRowsOf(ConfigFields()) {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", f.Path, f.Effect.Says(Anywhere), f.Install.Does(f.Effect))
	}
	b.WriteString(`
## What another hand has changed

` + "`kubexm diff -f config.yaml`" + ` holds every host against the record, whatever the config says by now: files by digest, units, kernel settings and the
cluster's objects. It lists what differs by host, with what would mend it, and changes nothing. Exit code 0 says that nothing differs, 3 that
something does or that a host does not answer; the others are looked at all the same. ` + "`kubexm install`" + ` with the config and the bundle that were
applied mends what it lists. Files are held against the lock of the bundle that was applied: ` + "`--bundle`" + `, the archive where it still lies on this
machine, or the workdir's copy of its lock. What needs more of the bundle than there is, is listed as not looked at, and does not count.

## Hosts that do not answer

` + "`kubexm install`" + ` says which host it cannot reach, and changes nothing. On a cluster that was finished ` + "`--skip-host NAME`" + ` goes on without
a host: see [hosts that are down](hosts-down.md).

` + "`kubexm delete cluster`" + ` and ` + "`kubexm reset`" + ` go on without a host if they are told to:

    kubexm delete cluster -f config.yaml --skip-host w2 --yes

The host is not called. The command says what stays on it, and ` + "`.kubexm/CLUSTER/left.json`" + ` remembers the host with the config that was applied to
it. The next ` + "`delete cluster`, `reset` or `install`" + ` that reaches the host cleans it first. A host of the control plane that comes back still has the old
cluster's keys and data: keep it off the network until then, or destroy its disk. With ` + "`--preserve-data`" + ` no master and no member of etcd
may be passed over.

## Deleting with another config

` + "`kubexm delete cluster`" + ` and ` + "`kubexm reset`" + ` take away what was applied, whatever the config says by now: hosts, roles, kinds and data folders are the
record's. The config says how hosts are reached. Where there is no record, as of a creation that never ended, the config counts. Things on a
host that it does not name then stay, with their records in ` + "`/var/lib/kubexm/CLUSTER`" + `; the command names them and fails. Write what the
cluster was made with, and run it again.
`)
	return b.String()
}

// effectRowsOf gives the fields on which something acts, a mapping in the place of
// fields that are all alike.
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
	case f.Effect != "": // what it says of itself holds for those fields too
		return append([]Field{f}, slices.DeleteFunc(out, func(x Field) bool { return !other(f)(x) })...)
	}
	return out
}

// TestExistingDocument: docs/existing-cluster.md says what the code does; -update
// writes it.
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
		t.Errorf("%s is not what the code does: go test ./manifest -update writes it anew (%v)", path, err)
	}
}
