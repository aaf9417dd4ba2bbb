// Command openebs stands in for the provisioner of OpenEBS's local volumes in the lab. It reads the
// same environment variables and the same StorageClasses, runs the same commands in pods of the helper
// image on nodes, and creates the same volumes. It polls where upstream's watches, and is stricter: it
// does not start without all rights that upstream's needs, nor with variables that it does not know.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"
)

// account is where a pod has the token of its service account.
const account = "/var/run/secrets/kubernetes.io/serviceaccount/"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Environ()); err != nil {
		fmt.Fprintln(os.Stderr, "localpv:", err)
		os.Exit(1)
	}
}

// settings are what the environment says.
type settings struct{ namespace, account, basePath, helperImage string }

// readSettings reads the environment as cmd/provisioner-localpv/app/env.go does.
func readSettings(environ []string) (settings, error) {
	values := map[string]string{}
	for _, line := range environ {
		if name, value, _ := strings.Cut(line, "="); strings.HasPrefix(name, "OPENEBS_") || name == "NODE_NAME" || name == "LEADER_ELECTION_ENABLED" {
			values[name] = value
		}
	}
	var errs []error
	take := func(name string) string {
		v := values[name]
		delete(values, name)
		if v == "" {
			errs = append(errs, fmt.Errorf("%s is not set", name))
		}
		return v
	}
	s := settings{take("OPENEBS_NAMESPACE"), take("OPENEBS_SERVICE_ACCOUNT"), take("OPENEBS_IO_BASE_PATH"), take("OPENEBS_IO_HELPER_IMAGE")}
	take("NODE_NAME")
	take("OPENEBS_IO_INSTALLER_TYPE")
	if take("OPENEBS_IO_ENABLE_ANALYTICS") != "false" {
		errs = append(errs, errors.New("OPENEBS_IO_ENABLE_ANALYTICS is not false: it would send reports to a service on the internet"))
	}
	if take("LEADER_ELECTION_ENABLED") != "true" {
		errs = append(errs, errors.New("LEADER_ELECTION_ENABLED is not true: two of them could provide one volume"))
	}
	if len(values) > 0 {
		errs = append(errs, fmt.Errorf("unknown variables %v", values))
	}
	return s, errors.Join(errs...)
}

func run(ctx context.Context, environ []string) error {
	s, err := readSettings(environ)
	if err != nil {
		return err
	}
	c, err := inCluster()
	if err != nil {
		return err
	}
	if err := mayDoAll(ctx, c, s.namespace); err != nil {
		return err
	}
	if err := c.lead(ctx, s.namespace); err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, "Provisioner started")
	p := &provisioner{settings: s, api: c}
	for {
		if err := p.look(ctx); err != nil && ctx.Err() == nil {
			fmt.Fprintln(os.Stderr, "localpv:", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Second):
		}
	}
}

// inCluster returns a client with the pod's own account.
func inCluster() (*client, error) {
	token, err := os.ReadFile(account + "token")
	if err != nil {
		return nil, err
	}
	ca, err := os.ReadFile(account + "ca.crt")
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		return nil, errors.New("the account has no CA")
	}
	return &client{
		base: "https://" + net.JoinHostPort(os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")), token: string(token),
		http: &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}},
	}, nil
}

// rights are what upstream's program does: its controller is sig-storage-lib-external-provisioner.
var rights = []struct {
	group, resource string
	own             bool // in its namespace
	verbs           []string
}{
	{"", "persistentvolumeclaims", false, []string{"get", "list", "watch", "update"}},
	{"", "persistentvolumes", false, []string{"get", "list", "watch", "create", "delete", "update"}},
	{"storage.k8s.io", "storageclasses", false, []string{"get", "list", "watch"}},
	{"", "nodes", false, []string{"get", "list", "watch"}},
	{"", "events", false, []string{"create", "patch", "update"}},
	{"", "pods", true, []string{"get", "create", "delete"}},
	{"coordination.k8s.io", "leases", true, []string{"get", "create", "update"}},
}

// mayDoAll returns an error with the rights that are missing.
func mayDoAll(ctx context.Context, c *client, namespace string) error {
	var missing []string
	for _, r := range rights {
		for _, verb := range r.verbs {
			about := object{"group": r.group, "resource": r.resource, "verb": verb}
			if r.own {
				about["namespace"] = namespace
			}
			answer, err := c.send(ctx, http.MethodPost, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", object{
				"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": object{"resourceAttributes": about},
			})
			if err != nil {
				return err
			}
			if allowed, _ := at(answer, "status", "allowed").(bool); !allowed {
				missing = append(missing, verb+" "+r.resource)
			}
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("the account %s may not %s", namespace, strings.Join(missing, ", "))
	}
	return nil
}

// names of upstream's.
const (
	provisionerName = "openebs.io/local"
	configuration   = "cas.openebs.io/config"
	providedBy      = "volume.kubernetes.io/storage-provisioner"
	selectedNode    = "volume.kubernetes.io/selected-node"
	provisionedBy   = "pv.kubernetes.io/provisioned-by"
	hostname        = "kubernetes.io/hostname"
)

type provisioner struct {
	settings
	api *client
}

// look creates the volumes that are asked for, and deletes those that were released.
func (p *provisioner) look(ctx context.Context) error {
	claims, err := p.api.send(ctx, http.MethodGet, "/api/v1/persistentvolumeclaims", nil)
	if err != nil {
		return err
	}
	var errs []error
	for _, claim := range list(claims) {
		notes, _ := at(claim, "metadata", "annotations").(object)
		if notes[providedBy] == provisionerName && notes[selectedNode] != nil && at(claim, "status", "phase") == "Pending" && at(claim, "spec", "volumeName") == nil {
			errs = append(errs, p.provide(ctx, claim, fmt.Sprint(notes[selectedNode])))
		}
	}
	volumes, err := p.api.send(ctx, http.MethodGet, "/api/v1/persistentvolumes", nil)
	if err != nil {
		return errors.Join(append(errs, err)...)
	}
	for _, v := range list(volumes) {
		if at(v, "metadata", "annotations", provisionedBy) == provisionerName && at(v, "status", "phase") == "Released" && at(v, "spec", "persistentVolumeReclaimPolicy") == "Delete" {
			errs = append(errs, p.remove(ctx, v))
		}
	}
	return errors.Join(errs...)
}

// provide creates the folder of a claim's volume on a node, and then the volume.
func (p *provisioner) provide(ctx context.Context, claim object, node string) error {
	class, err := p.api.send(ctx, http.MethodGet, "/apis/storage.k8s.io/v1/storageclasses/"+fmt.Sprint(at(claim, "spec", "storageClassName")), nil)
	if err != nil {
		return err
	}
	base, err := basePath(fmt.Sprint(at(class, "metadata", "annotations", configuration)), p.basePath)
	if err != nil {
		return err
	}
	name := "pvc-" + fmt.Sprint(at(claim, "metadata", "uid"))
	if err := p.onNode(ctx, "init", node, name, base, "mkdir", "-m", "0777", "-p"); err != nil {
		return err
	}
	_, err = p.api.send(ctx, http.MethodPost, "/api/v1/persistentvolumes", object{
		"apiVersion": "v1", "kind": "PersistentVolume",
		"metadata": object{"name": name, "labels": object{"openebs.io/cas-type": "local-hostpath"}, "annotations": object{provisionedBy: provisionerName}},
		"spec": object{
			"accessModes": at(claim, "spec", "accessModes"), "volumeMode": "Filesystem", "storageClassName": at(claim, "spec", "storageClassName"),
			"capacity":                      object{"storage": at(claim, "spec", "resources", "requests", "storage")},
			"persistentVolumeReclaimPolicy": at(class, "reclaimPolicy"),
			"local":                         object{"path": path.Join(base, name), "fsType": ""},
			"claimRef": object{
				"apiVersion": "v1", "kind": "PersistentVolumeClaim", "name": at(claim, "metadata", "name"),
				"namespace": at(claim, "metadata", "namespace"), "uid": at(claim, "metadata", "uid"),
			},
			"nodeAffinity": object{"required": object{"nodeSelectorTerms": []any{object{
				"matchExpressions": []any{object{"key": hostname, "operator": "In", "values": []any{node}}},
			}}}},
		},
	})
	return err
}

// remove deletes the folder of a volume, and then the volume.
func (p *provisioner) remove(ctx context.Context, v object) error {
	folder := fmt.Sprint(at(v, "spec", "local", "path"))
	terms, _ := at(v, "spec", "nodeAffinity", "required", "nodeSelectorTerms").([]any)
	if len(terms) != 1 {
		return errors.New("cannot find affinited node details")
	}
	term, _ := terms[0].(object)
	expressions, _ := term["matchExpressions"].([]any)
	first, _ := expressions[0].(object)
	nodes, _ := first["values"].([]any)
	name := fmt.Sprint(at(v, "metadata", "name"))
	if err := p.onNode(ctx, "cleanup", fmt.Sprint(nodes[0]), path.Base(folder), path.Dir(folder), "rm", "-rf"); err != nil {
		return err
	}
	_, err := p.api.send(ctx, http.MethodDelete, "/api/v1/persistentvolumes/"+name, nil)
	return err
}

// onNode runs a command with the path of a volume in a pod on a node, and waits for two minutes as
// upstream does (cmd/provisioner-localpv/app/helper_hostpath.go).
func (p *provisioner) onNode(ctx context.Context, what, node, volume, base string, argv ...string) error {
	name, pods := what+"-"+volume, "/api/v1/namespaces/"+p.namespace+"/pods"
	command := append(slices.Clone(argv), path.Join("/data", volume))
	if _, err := p.api.send(ctx, http.MethodPost, pods, object{
		"apiVersion": "v1", "kind": "Pod", "metadata": object{"name": name},
		"spec": object{
			"restartPolicy": "Never", "serviceAccountName": p.account,
			"affinity": object{"nodeAffinity": object{"requiredDuringSchedulingIgnoredDuringExecution": object{"nodeSelectorTerms": []any{object{
				"matchExpressions": []any{object{"key": hostname, "operator": "In", "values": []any{node}}},
			}}}}},
			"containers": []any{object{
				"name": "local-path-" + what, "image": p.helperImage, "command": command, "securityContext": object{"privileged": true},
				"volumeMounts": []any{object{"name": "data", "mountPath": "/data/"}, object{"name": "dev", "mountPath": "/dev/"}},
			}},
			"volumes": []any{object{"name": "data", "hostPath": object{"path": base}}, object{"name": "dev", "hostPath": object{"path": "/dev/"}}},
		},
	}); err != nil {
		return err
	}
	defer func() { _, _ = p.api.send(context.WithoutCancel(ctx), http.MethodDelete, pods+"/"+name, nil) }()
	for range 120 {
		pod, err := p.api.send(ctx, http.MethodGet, pods+"/"+name, nil)
		if err != nil {
			return err
		}
		if at(pod, "status", "phase") == "Succeeded" {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Second):
		}
	}
	return fmt.Errorf("%s: create process timeout after 120 seconds", name)
}
