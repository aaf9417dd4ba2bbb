package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

// complete is the environment that the manifest of steps/addon sets.
var complete = []string{
	"OPENEBS_NAMESPACE=openebs", "NODE_NAME=h1", "OPENEBS_SERVICE_ACCOUNT=openebs-localpv-provisioner", "OPENEBS_IO_ENABLE_ANALYTICS=false",
	"OPENEBS_IO_BASE_PATH=/data", "OPENEBS_IO_HELPER_IMAGE=utils:1", "OPENEBS_IO_INSTALLER_TYPE=kubexm", "LEADER_ELECTION_ENABLED=true", "PATH=/bin",
}

func TestSettings(t *testing.T) {
	if s, err := readSettings(complete); err != nil || s != (settings{"openebs", "openebs-localpv-provisioner", "/data", "utils:1"}) {
		t.Errorf("%+v, %v", s, err)
	}
	for old, now := range map[string]string{
		"OPENEBS_NAMESPACE=openebs": "A=b", "OPENEBS_IO_ENABLE_ANALYTICS=false": "OPENEBS_IO_ENABLE_ANALYTICS=true",
		"LEADER_ELECTION_ENABLED=true": "LEADER_ELECTION_ENABLED=false", "PATH=/bin": "OPENEBS_IO_OTHER=1",
	} {
		environ := slices.Clone(complete)
		environ[slices.Index(environ, old)] = now
		if _, err := readSettings(environ); err == nil {
			t.Errorf("%s is accepted", now)
		}
	}
}

func TestBasePath(t *testing.T) {
	const of = "- name: StorageType\n  value: hostpath\n"
	for config, want := range map[string]string{
		of: "/else/where", of + "- name: BasePath\n  value: /data/volumes\n": "/data/volumes",
		of + "- name: BasePath\n  value: /data\n": "", "- name: StorageType\n  value: device\n": "", of + "- name: Other\n  value: 1\n": "", "x": "",
	} {
		if got, err := basePath(config, "/else/where"); got != want || (err == nil) == (want == "") {
			t.Errorf("%q: %q, %v", config, got, err)
		}
	}
}

// TestVolume: a claim becomes a folder and a volume, and both go when the claim has gone.
func TestVolume(t *testing.T) {
	stored := map[string]object{
		"/api/v1/persistentvolumeclaims": {"items": []any{object{
			"metadata": object{"name": "data", "namespace": "default", "uid": "1-2", "annotations": object{providedBy: localName, selectedNode: "h2"}},
			"spec":     object{"storageClassName": "own", "accessModes": []any{"ReadWriteOnce"}, "resources": object{"requests": object{"storage": "1Mi"}}},
			"status":   object{"phase": "Pending"},
		}}},
		"/apis/storage.k8s.io/v1/storageclasses/own": {
			"metadata":      object{"annotations": object{configuration: "- name: StorageType\n  value: hostpath\n- name: BasePath\n  value: /data/volumes\n"}},
			"reclaimPolicy": "Delete",
		},
		"/api/v1/persistentvolumes": {},
	}
	var did []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		in := object{}
		text, _ := io.ReadAll(r.Body)
		_ = json.Unmarshal(text, &in)
		switch r.Method {
		case http.MethodPost:
			stored[r.URL.Path+"/"+fmt.Sprint(at(in, "metadata", "name"))] = in
			if containers, _ := at(in, "spec", "containers").([]any); len(containers) == 1 {
				in["status"] = object{"phase": "Succeeded"}
				only, _ := containers[0].(object)
				did = append(did, strings.Trim(fmt.Sprint(only["command"]), "[]"))
			}
		case http.MethodDelete:
			delete(stored, r.URL.Path)
		}
		answer, ok := stored[r.URL.Path]
		if !ok && r.Method == http.MethodGet {
			w.WriteHeader(http.StatusNotFound)
		}
		_ = json.NewEncoder(w).Encode(answer)
	}))
	defer server.Close()
	c := &client{base: server.URL, http: server.Client()}
	p := &provisioner{kind: &local{settings{"openebs", "me", "/else/where", "utils:1"}, c}, name: localName, api: c}
	if err := p.look(context.Background()); err != nil {
		t.Fatal(err)
	}
	const volume = "/api/v1/persistentvolumes/pvc-1-2"
	v := stored[volume]
	if at(v, "spec", "local", "path") != "/data/volumes/pvc-1-2" || at(v, "spec", "claimRef", "name") != "data" || at(v, "spec", "persistentVolumeReclaimPolicy") != "Delete" {
		t.Errorf("volume %v", v)
	}
	v["status"] = object{"phase": "Released"}
	stored["/api/v1/persistentvolumes"] = object{"items": []any{v}}
	stored["/api/v1/persistentvolumeclaims"] = object{}
	if err := p.look(context.Background()); err != nil {
		t.Fatal(err)
	}
	if want := []string{"mkdir -m 0777 -p /data/pvc-1-2", "rm -rf /data/pvc-1-2"}; !slices.Equal(did, want) || stored[volume] != nil {
		t.Errorf("ran %q; the volume is %v", did, stored[volume])
	}
}
