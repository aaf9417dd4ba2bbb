// Package starter generates cluster configs to start from, for hosts given by address.
package starter

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"strconv"
	"strings"

	"github.com/mensylisir/kubexm/manifest/refusal"
)

// Machines are the hosts of a cluster, by address (10.0.0.11) or address range (10.0.0.11-13).
type Machines struct {
	Masters, Workers, Registry []string
	User                       string // SSH user on all hosts
}

// HasHosts reports whether there are any hosts.
func (m *Machines) HasHosts() bool { return len(m.Masters)+len(m.Workers)+len(m.Registry) > 0 }

// mostInRange is the maximum number of hosts in one range.
const mostInRange = 256

// addresses expands addresses and address ranges in the values of a flag.
func addresses(flag string, words []string) ([]string, error) {
	var out []string
	for _, w := range words {
		wrong := &refusal.Error{Err: fmt.Errorf("--%s %s: not an address or address range", flag, w), Kind: refusal.Usage, Advice: "write 10.0.0.11, or 10.0.0.11-13"}
		first, last, ranged := strings.Cut(w, "-")
		at, err := netip.ParseAddr(first)
		if err != nil || ranged && !at.Is4() {
			return nil, wrong
		}
		n := 1
		if ranged {
			end, err := strconv.Atoi(last)
			if n = end - int(at.AsSlice()[3]) + 1; err != nil || n < 1 || end > 255 || n > mostInRange {
				return nil, wrong
			}
		}
		for range n {
			out = append(out, at.String())
			at = at.Next()
		}
	}
	return out, nil
}

// starterVersion matches the Kubernetes version in a starter.
var starterVersion = regexp.MustCompile(`(?m)^\s+version: (v\S+)`)

// Config returns a config for the machines, with the Kubernetes version of starter. Starter is
// an example config. An error is a *refusal.Error if flags are invalid.
func (m *Machines) Config(starter []byte) ([]byte, error) {
	masters, err := addresses("masters", m.Masters)
	if err != nil {
		return nil, err
	}
	workers, err := addresses("workers", m.Workers)
	if err != nil {
		return nil, err
	}
	registry, err := addresses("registry", m.Registry)
	if err != nil {
		return nil, err
	}
	version := starterVersion.FindSubmatch(starter)
	switch {
	case len(masters) == 0:
		return nil, &refusal.Error{Err: errors.New("--masters is missing: a cluster has at least one"), Kind: refusal.Usage, Advice: "kubexm config init --masters 10.0.0.11-13 --workers 10.0.0.21-40"}
	case len(registry) > 1:
		return nil, &refusal.Error{Err: errors.New("--registry: more than one host"), Kind: refusal.Usage, Advice: "specify one host"}
	case version == nil:
		return nil, errors.New("the starter has no Kubernetes version")
	}
	var hosts strings.Builder
	names := map[string]string{} // by address
	group := func(role string, all []string) string {
		var in []string
		for i, at := range all {
			if names[at] == "" {
				names[at] = role + strconv.Itoa(i+1)
				fmt.Fprintf(&hosts, "    - {name: %s, address: %q}\n", names[at], at)
			}
			in = append(in, names[at])
		}
		return strings.Join(in, ", ")
	}
	master := group("master", masters)
	if len(workers) == 0 {
		workers = masters
	}
	worker := group("worker", workers)
	roles := fmt.Sprintf("    master: [%s]\n    worker: [%s]\n", master, worker)
	if len(registry) > 0 {
		roles += fmt.Sprintf("    registry: [%s]\n", group("registry", registry))
	}
	return fmt.Appendf(nil, `# Written by kubexm config init. "kubexm config explain" describes each field.
apiVersion: kubexm.mensylisir.io/v1alpha1
kind: Cluster
metadata:
  name: demo # name of the bundle's file and of the cluster's folder in the workdir
spec:
  ssh:
    user: %q
    privateKeyPath: ~/.ssh/id_ed25519
  roleGroups:
%s  hosts:
%s  kubernetes:
    version: %s
  etcd:
    type: kubeadm # a static pod on each master
  network:
    plugin: calico
    calico: {vxlanMode: Always}
`, m.User, roles, &hosts, version[1]), nil
}
