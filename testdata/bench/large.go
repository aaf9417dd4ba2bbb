package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// large is what many hosts cost. The hosts of a run are simulated ones, in the
// memory of the process that runs: what is measured is theirs too.
type large struct {
	Plan    sample  `json:"plan"`    // kubexm plan create
	Run     sample  `json:"run"`     // a cluster made, and asked for again
	Seconds float64 `json:"seconds"` // of the first of the two
	Again   float64 `json:"again"`   // of the second
	First   float64 `json:"first"`   // cpu of the first
	Second  float64 `json:"second"`  // and of the second
	Ran     int     `json:"ran"`     // steps on hosts, of the first
	Rerun   int     `json:"rerun"`   // of the second
}

// How many hosts there are, and how many there are to compare with.
const (
	largeHosts = 1000
	fewHosts   = 100
)

// larges measures both.
func (w *work) larges(ctx context.Context, r *round) error {
	for _, x := range []struct {
		hosts int
		into  *large
	}{{largeHosts, &r.Large}, {fewHosts, &r.Few}} {
		n, err := w.large(ctx, x.hosts)
		if err != nil {
			return fmt.Errorf("%d hosts: %w", x.hosts, err)
		}
		*x.into = n
	}
	return nil
}

func (w *work) large(ctx context.Context, hosts int) (l large, err error) {
	config := filepath.Join(w.dir, "hosts-"+strconv.Itoa(hosts)+".yaml")
	if err := os.WriteFile(config, []byte(largeConfig(hosts)), 0o600); err != nil {
		return l, err
	}
	if l.Plan, err = w.measure(ctx, process{args: w.kubexm("plan", "plan", "create", "-f", config)}); err != nil {
		return l, err
	}
	var out bytes.Buffer
	args := append(w.before("run"), w.runs, "-test.run=^TestLargeSite$", "-test.timeout=30m", "-hosts", strconv.Itoa(hosts))
	if l.Run, err = w.measure(ctx, process{args: args, dir: w.runsIn, stdout: &out}); err != nil {
		return l, errors.Join(err, errors.New(out.String()))
	}
	var told []struct {
		Seconds float64
		CPU     float64
		Ran     int
	}
	if err := json.NewDecoder(&out).Decode(&told); err != nil || len(told) != 2 {
		return l, fmt.Errorf("%s told of %d runs: %w", w.runs, len(told), err)
	}
	l.Seconds, l.Again, l.Ran, l.Rerun = told[0].Seconds, told[1].Seconds, told[0].Ran, told[1].Ran
	l.First, l.Second = told[0].CPU, told[1].CPU
	return l, nil
}

// largeConfig is a cluster of so many hosts, as that of TestLargeSite.
func largeConfig(n int) string {
	var b strings.Builder
	b.WriteString("apiVersion: kubexm.mensylisir.io/v1alpha1\nkind: Cluster\nmetadata: {name: demo}\nspec:\n  hosts:\n" +
		"    - {name: r1, address: 192.0.2.10}\n    - {name: m1, address: 192.0.2.11}\n")
	for i := range n - 2 {
		fmt.Fprintf(&b, "    - {name: w%d, address: 198.18.%d.%d}\n", i+1, i/250, i%250+1)
	}
	fmt.Fprintf(&b, "  ssh: {user: root, password: secret}\n  roleGroups: {registry: [r1], master: [m1], worker: ['w[1:%d]']}\n"+
		"  kubernetes: {version: v1.35.1}\n  etcd: {type: kubeadm}\n  network: {plugin: flannel, kubePodsCIDR: 10.64.0.0/10}\n", n-2)
	return b.String()
}

// ofLarge has the rows of many hosts.
func (m measured) ofLarge() []figure {
	of := func(f func(round) float64) float64 { return median(m.Rounds, f) }
	return []figure{
		{Name: "a plan for 1,000 hosts", Unit: "s", Goal: most(1, 0.5), Step: "plan", Ours: of(func(r round) float64 { return r.Large.Plan.Wall })},
		{Name: "peak memory of that plan", Unit: "MB", Goal: most(200, 100), Step: "plan", Ours: m.megabytes(func(r round) int64 { return r.Large.Plan.Memory })},
		{Name: "a run over 1,000 simulated hosts", Unit: "s", Goal: most(25, 15), Step: "run", Ours: of(func(r round) float64 { return r.Large.Seconds })},
		{Name: "cpu of both runs over 1,000 hosts / ten times that over 100", Ours: of(func(r round) float64 { return r.Large.Run.CPU / r.Few.Run.CPU / (largeHosts / fewHosts) })},
		{Name: "peak memory of both runs, the simulated hosts' too", Unit: "MB", Goal: most(800, 500), Step: "run", Ours: m.megabytes(func(r round) int64 { return r.Large.Run.Memory })},
		{Name: "the second run", Unit: "s", Goal: most(5, 3), Step: "run", Ours: of(func(r round) float64 { return r.Large.Again })},
		{Name: "cpu of the second run / of the first", Ours: of(func(r round) float64 { return r.Large.Second / r.Large.First })},
		{Name: "steps that the second run does", Unit: "steps", Goal: most(0, 0), Ours: of(func(r round) float64 { return float64(r.Large.Rerun) })},
	}
}
