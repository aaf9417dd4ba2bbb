package kubeadm_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
	"github.com/mensylisir/kubexm/steps/kubeadm"
	"github.com/mensylisir/kubexm/steps/steptest"
)

// TestFolderOfEtcd: kubeadm's reset leaves the folder of the store. One that
// kubexm made goes, with the folder above it; one that was there stays as it was.
func TestFolderOfEtcd(t *testing.T) {
	for name, before := range map[string]func(*conntest.Sim){
		"made":  nil,
		"there": func(s *conntest.Sim) { s.AddDir("/data/etcd", 0o755) },
	} {
		t.Run(name, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { folderOfEtcd(t, before) }) })
	}
}

func folderOfEtcd(t *testing.T, before func(*conntest.Sim)) {
	c := steptest.Cluster(t, strings.Replace(steptest.Small, "etcd: {type: kubeadm}", "etcd: {type: kubeadm, dataDir: /data/etcd}", 1))
	s := conntest.New(t)
	programs(s)
	for _, tool := range []string{"crictl", "ip", "ipset", "iptables-save", "ip6tables-save", "nft"} {
		s.HandleProgram(tool, func(connector.Cmd, []byte) (connector.Result, bool) { return connector.Result{Exit: 1}, true })
	}
	if before != nil {
		before(s)
	}
	was, existed := s.File("/data/etcd")
	kase := steptest.Case{Cluster: c, Workdir: t.TempDir()}
	made := kubeadm.Init(c)
	if err := made.Run(t.Context(), kase.NewHost(t, s, made)); err != nil {
		t.Fatal(err)
	}
	if f, ok := s.File("/data/etcd"); !ok || f.Mode.Perm() != 0o700 {
		t.Errorf("the store has the folder %+v", f)
	}
	for range 2 { // a second reset finds nothing
		gone := kubeadm.ResetMaster()
		if err := gone.Run(t.Context(), kase.NewHost(t, s, gone)); err != nil {
			t.Fatal(err)
		}
		f, ok := s.File("/data/etcd")
		if ok != existed || f.Mode != was.Mode {
			t.Errorf("it was %v %v, and is %v %v", existed, was.Mode, ok, f.Mode)
		}
		if _, ok := s.File("/data"); ok != existed {
			t.Errorf("the folder above it: was there %t, is there %t", existed, ok)
		}
	}
}
