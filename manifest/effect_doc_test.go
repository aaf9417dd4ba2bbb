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

Of two rows that match a field, the longer one counts.

| field | on a cluster that exists |
|---|---|
`)
	says := map[Effect]string{
		EffectTool:    "taken: hosts do not know it",
		EffectInstall: "taken: install brings the cluster to it",
		EffectAdd:     "what is added or exchanged is taken; what is taken away is refused",
		EffectSet:     "taken; refused where nothing of it is left",
		EffectTake:    "what is taken away is taken; what is added is refused",
		EffectVersion: "refused where the bundle's lock has another version",
		EffectCreate:  "refused",
		EffectHosts:   "new hosts are taken; everything else is refused",
		EffectService: "taken where etcd is a service (type kubexm): members restart one at a time; refused where kubeadm runs etcd",
	}
	all := Effects()
	slices.SortFunc(all, func(x, y Effected) int { return strings.Compare(x.Path, y.Path) })
	for _, e := range all {
		fmt.Fprintf(&b, "| `%s` | %s |\n", e.Path, says[e.Effect])
	}
	b.WriteString(`
## Hosts that do not answer

` + "`kubexm install`" + ` needs every host of the config. It says which host it cannot reach, and changes nothing.

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
