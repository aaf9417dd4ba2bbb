package kubeadm_test

import (
	"testing"

	"github.com/mensylisir/kubexm/steps/connector/conntest"
	"github.com/mensylisir/kubexm/steps/kubeadm"
	"github.com/mensylisir/kubexm/steps/steptest"
)

func TestInstallKeepsItsLaws(t *testing.T) {
	for name, before := range map[string]func(*conntest.Sim){
		"bare": nil,
		"with a kubelet of the distribution's": func(s *conntest.Sim) {
			s.AddUnit("kubelet.service", "[Service]\nExecStart=/usr/bin/kubelet\n[Install]\nWantedBy=multi-user.target\n", true, true)
			s.AddFile("/usr/local/bin/kubectl", "theirs", 0o700)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			steptest.Ensure(t, steptest.Case{Before: before, Every: 3}, kubeadm.Install(), kubeadm.Uninstall())
		})
	}
}
