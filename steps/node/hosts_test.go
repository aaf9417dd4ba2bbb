package node_test

import (
	"flag"
	"testing"

	"github.com/mensylisir/kubexm/steps/node"
	"github.com/mensylisir/kubexm/steps/steptest"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

const site = `apiVersion: kubexm.mensylisir.io/v1alpha1
kind: Cluster
metadata: {name: demo}
spec:
  hosts:
    - {name: m1, address: 198.51.100.11, internalAddress: 10.0.0.11}
    - {name: w1, address: 198.51.100.21}
    - {name: r1, address: 198.51.100.31, internalAddress: 10.0.0.31}
  ssh: {user: root, password: secret}
  roleGroups: {master: [m1], worker: [w1], registry: [r1]}
  etcd: {type: kubeadm}
  network: {plugin: flannel}
`

func TestHostsBlock(t *testing.T) {
	for name, rest := range map[string]string{
		"plain": "  kubernetes: {version: v1.34.10}\n",
		"everything": "  kubernetes: {version: v1.34.10, clusterName: site.local}\n  controlPlaneEndpoint: {domain: api.site.local, address: 10.0.0.100}\n  loadBalancer: {external: {type: external}}\n" +
			"  registry: {privateRegistry: 'images.site.local:5000'}\n  extra: {hosts: [{domain: git.site.local, address: 10.0.0.50}]}\n",
		"port-without-balancer": "  kubernetes: {version: v1.34.10}\n  controlPlaneEndpoint: {domain: api.site.local, address: 198.51.100.11, port: 7443}\n",
		"dns-outside":           "  kubernetes: {version: v1.34.10}\n  controlPlaneEndpoint: {domain: api.site.local, externalDNS: true}\n",
	} {
		t.Run(name, func(t *testing.T) {
			steptest.Golden(t, *update, "hosts-"+name, string(node.Hosts(steptest.Cluster(t, site+rest), "w1", false)))
		})
	}
}
