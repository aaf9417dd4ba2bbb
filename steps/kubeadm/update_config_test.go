package kubeadm_test

import (
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/steps/connector/conntest"
	"github.com/mensylisir/kubexm/steps/kubeadm"
	"github.com/mensylisir/kubexm/steps/steptest"
)

// stored is a cluster whose kubeadm-config has a text.
func stored(config, text string) func(*testing.T) (steptest.Case, **steptest.Kube) {
	return func(t *testing.T) (steptest.Case, **steptest.Kube) {
		c := steptest.Cluster(t, config)
		kube := new(*steptest.Kube)
		return steptest.Case{Cluster: c, Before: func(s *conntest.Sim) {
			*kube = steptest.ExistingKube(c, s)
			(*kube).Put(steptest.Object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": steptest.Object{"name": "kubeadm-config", "namespace": "kube-system"},
				"data": steptest.Object{"ClusterConfiguration": text}})
		}}, kube
	}
}

const configText = `apiServer:
  certSANs:
    - lb.kubexm.local
    - other # of earlier
  extraArgs:
    - {name: audit-log-path, value: /var/log}
kind: ClusterConfiguration
kubernetesVersion: v1.34.10
`

// TestUpdateConfig: the names of the masters are written, and every other field stays.
func TestUpdateConfig(t *testing.T) {
	kase, kube := stored(steptest.Small, configText)(t)
	step := kubeadm.UpdateConfig(kase.Cluster)
	steptest.Do(t, kase, step, false)
	s := kase.Sim(t)
	if err := step.Run(t.Context(), kase.NewHost(t, s, step)); err != nil {
		t.Fatal(err)
	}
	data, _ := (*kube).Object("v1", "ConfigMap", "kube-system", "kubeadm-config")["data"].(steptest.Object)
	text, _ := data["ClusterConfiguration"].(string)
	want := "apiServer:\n  certSANs:\n    - 192.0.2.11\n    - lb.kubexm.local\n    - node1\n    - node1.cluster.local\n" + configText[strings.Index(configText, "  extraArgs"):]
	if text != want {
		t.Errorf("%s", text)
	}
}

// TestUpdateConfigOfAService: API servers of an etcd that runs as a service know all of its
// members.
func TestUpdateConfigOfAService(t *testing.T) {
	config := strings.NewReplacer("{type: kubeadm}", "{type: kubexm}", "registry: [node1]", "registry: [node1]\n    etcd: [node1]").Replace(steptest.Small)
	kase, kube := stored(config, "etcd:\n  external:\n    caFile: /a\n    endpoints:\n      - https://192.0.2.99:2379\n")(t)
	s := kase.Sim(t)
	step := kubeadm.UpdateConfig(kase.Cluster)
	if err := step.Run(t.Context(), kase.NewHost(t, s, step)); err != nil {
		t.Fatal(err)
	}
	data, _ := (*kube).Object("v1", "ConfigMap", "kube-system", "kubeadm-config")["data"].(steptest.Object)
	text, _ := data["ClusterConfiguration"].(string)
	if !strings.Contains(text, "    caFile: /a\n    endpoints:\n      - https://192.0.2.11:2379\napiServer:\n  certSANs:\n") {
		t.Errorf("%s", text)
	}
}

// TestUpdateConfigOfNothing: a ConfigMap without the configuration is an error with advice.
func TestUpdateConfigOfNothing(t *testing.T) {
	for _, text := range []string{"", "a: [", "- a list"} {
		kase, _ := stored(steptest.Small, text)(t)
		s := kase.Sim(t)
		step := kubeadm.UpdateConfig(kase.Cluster)
		if err := step.Run(t.Context(), kase.NewHost(t, s, step)); err == nil || !strings.Contains(err.Error(), "configmap kubeadm-config") {
			t.Errorf("%q: %v", text, err)
		}
	}
}
