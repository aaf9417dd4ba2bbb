package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestNFSSettings(t *testing.T) {
	complete := []string{"PROVISIONER_NAME=k8s-sigs.io/nfs", "NFS_SERVER=192.0.2.5", "NFS_PATH=/srv", "PATH=/bin"}
	if p, err := nfsOf(complete); err != nil || p.name != "k8s-sigs.io/nfs" || *p.kind.(*onNFS) != (onNFS{"192.0.2.5", "/srv", exported}) {
		t.Errorf("%+v, %v", p, err)
	}
	for i := range 3 {
		environ := append([]string{"NFS_OTHER=1"}, complete...)
		if i > 0 {
			environ = append(complete[:i:i], complete[i+1:]...)
		}
		if _, err := nfsOf(environ); err == nil {
			t.Errorf("%q is accepted", environ)
		}
	}
}

// TestNFSVolume: a claim becomes a folder of the server's, which keeps its content under another name
// when the claim has gone.
func TestNFSVolume(t *testing.T) {
	n := &onNFS{"192.0.2.5", "/srv", t.TempDir()}
	claim := object{"metadata": object{"name": "data", "namespace": "shop"}}
	spec, err := n.create(t.Context(), claim, object{"parameters": object{"archiveOnDelete": "true"}}, "pvc-1-2")
	if err != nil || at(spec, "nfs", "path") != "/srv/shop-data-pvc-1-2" || at(spec, "nfs", "server") != "192.0.2.5" {
		t.Fatalf("%v, %v", spec, err)
	}
	folder := filepath.Join(n.mounted, "shop-data-pvc-1-2")
	if info, err := os.Stat(folder); err != nil || info.Mode().Perm() != 0o777 {
		t.Errorf("%v, %v", info, err)
	}
	if err := os.WriteFile(filepath.Join(folder, "x"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := n.remove(t.Context(), object{"spec": spec}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(n.mounted, "archived-shop-data-pvc-1-2", "x")); err != nil {
		t.Error(err)
	}
	if _, err := n.create(t.Context(), claim, object{"parameters": object{"other": "1"}}, "pvc-3"); err == nil {
		t.Error("an unknown parameter is accepted")
	}
}
