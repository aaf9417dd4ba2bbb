// Command volumes stands in for provisioners of volumes in the lab, by the name that it is called by: that of
// OpenEBS's local volumes, and that of volumes on an NFS server. It reads the same environment variables
// and the same StorageClasses, and creates the same volumes. It polls where upstream's watch, and is
// stricter: it does not start without all rights that upstream's need, nor with variables that it does
// not know.
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
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// account is where a pod has the token of its service account.
const account = "/var/run/secrets/kubernetes.io/serviceaccount/"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, filepath.Base(os.Args[0]), os.Environ()); err != nil {
		fmt.Fprintln(os.Stderr, "volumes:", err)
		os.Exit(1)
	}
}

// kind is a kind of volumes.
type kind interface {
	// provides reports whether a claim is one for a volume of the kind, as far as its annotations say.
	provides(notes object) bool
	// create creates what a claim's volume of that name is on. It returns the volume's source, by its
	// field, and what else its spec has.
	create(ctx context.Context, claim, class object, name string) (object, error)
	// remove removes what a volume is on.
	remove(ctx context.Context, volume object) error
}

// provisioner provides volumes of a kind.
type provisioner struct {
	kind
	name   string // in annotations
	labels object // of volumes
	api    *client
}

// provisioners make a provisioner of the environment, by the names of upstream's programs. They check
// that it may do all that upstream's does.
var provisioners = map[string]func(ctx context.Context, c *client, environ []string) (*provisioner, error){
	"provisioner-localpv":             newLocal,
	"nfs-subdir-external-provisioner": newNFS,
}

func run(ctx context.Context, program string, environ []string) error {
	of, ok := provisioners[program]
	if !ok {
		return fmt.Errorf("%s is no provisioner", program)
	}
	c, err := inCluster()
	if err != nil {
		return err
	}
	p, err := of(ctx, c, environ)
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, "Provisioner started")
	for {
		if err := p.look(ctx); err != nil && ctx.Err() == nil {
			fmt.Fprintln(os.Stderr, "volumes:", err)
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

// environment takes variables from an environment.
type environment struct {
	values map[string]string
	errs   []error
}

// variables returns those that a program knows: whose name is listed, or has the prefix.
func variables(environ []string, prefix string, names ...string) *environment {
	e := &environment{values: map[string]string{}}
	for _, line := range environ {
		name, value, _ := strings.Cut(line, "=")
		if strings.HasPrefix(name, prefix) {
			e.values[name] = value
		}
		for _, n := range names {
			if n == name {
				e.values[name] = value
			}
		}
	}
	return e
}

func (e *environment) take(name string) string {
	v := e.values[name]
	delete(e.values, name)
	if v == "" {
		e.errs = append(e.errs, fmt.Errorf("%s is not set", name))
	}
	return v
}

// is takes a variable that has one value.
func (e *environment) is(name, want, otherwise string) {
	if v := e.take(name); v != "" && v != want {
		e.errs = append(e.errs, fmt.Errorf("%s is not %s: %s", name, want, otherwise))
	}
}

// done returns what was wrong.
func (e *environment) done() error {
	if len(e.values) > 0 {
		e.errs = append(e.errs, fmt.Errorf("unknown variables %v", e.values))
	}
	return errors.Join(e.errs...)
}

// right is what an account may do with a resource, in its own namespace or in all.
type right struct {
	group, resource string
	own             bool
	verbs           []string
}

// ofController are the rights of sig-storage-lib-external-provisioner, the controller in both of
// upstream's programs, but for its leader election.
var ofController = []right{
	{"", "persistentvolumeclaims", false, []string{"get", "list", "watch", "update"}},
	{"", "persistentvolumes", false, []string{"get", "list", "watch", "create", "delete"}},
	{"storage.k8s.io", "storageclasses", false, []string{"get", "list", "watch"}},
	{"", "nodes", false, []string{"get", "list", "watch"}},
	{"", "events", false, []string{"create", "patch", "update"}},
}

// mayDoAll returns an error with the rights that are missing.
func mayDoAll(ctx context.Context, c *client, namespace string, rights []right) error {
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

// annotations of the controller's.
const (
	providedBy    = "volume.kubernetes.io/storage-provisioner"
	selectedNode  = "volume.kubernetes.io/selected-node"
	provisionedBy = "pv.kubernetes.io/provisioned-by"
)

// look creates the volumes that are asked for, and deletes those that were released.
func (p *provisioner) look(ctx context.Context) error {
	claims, err := p.api.send(ctx, http.MethodGet, "/api/v1/persistentvolumeclaims", nil)
	if err != nil {
		return err
	}
	var errs []error
	for _, claim := range list(claims) {
		notes, _ := at(claim, "metadata", "annotations").(object)
		if notes[providedBy] == p.name && p.provides(notes) && at(claim, "status", "phase") == "Pending" && at(claim, "spec", "volumeName") == nil {
			errs = append(errs, p.provide(ctx, claim))
		}
	}
	volumes, err := p.api.send(ctx, http.MethodGet, "/api/v1/persistentvolumes", nil)
	if err != nil {
		return errors.Join(append(errs, err)...)
	}
	for _, v := range list(volumes) {
		if at(v, "metadata", "annotations", provisionedBy) == p.name && at(v, "status", "phase") == "Released" && at(v, "spec", "persistentVolumeReclaimPolicy") == "Delete" {
			if err := p.remove(ctx, v); err != nil {
				errs = append(errs, err)
				continue
			}
			_, err := p.api.send(ctx, http.MethodDelete, "/api/v1/persistentvolumes/"+fmt.Sprint(at(v, "metadata", "name")), nil)
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// provide creates a claim's volume.
func (p *provisioner) provide(ctx context.Context, claim object) error {
	class, err := p.api.send(ctx, http.MethodGet, "/apis/storage.k8s.io/v1/storageclasses/"+fmt.Sprint(at(claim, "spec", "storageClassName")), nil)
	if err != nil {
		return err
	}
	name := "pvc-" + fmt.Sprint(at(claim, "metadata", "uid"))
	spec, err := p.create(ctx, claim, class, name)
	if err != nil {
		return err
	}
	for key, value := range (object{
		"accessModes": at(claim, "spec", "accessModes"), "volumeMode": "Filesystem", "storageClassName": at(claim, "spec", "storageClassName"),
		"capacity":                      object{"storage": at(claim, "spec", "resources", "requests", "storage")},
		"persistentVolumeReclaimPolicy": at(class, "reclaimPolicy"),
		"claimRef": object{
			"apiVersion": "v1", "kind": "PersistentVolumeClaim", "name": at(claim, "metadata", "name"),
			"namespace": at(claim, "metadata", "namespace"), "uid": at(claim, "metadata", "uid"),
		},
	}) {
		spec[key] = value
	}
	_, err = p.api.send(ctx, http.MethodPost, "/api/v1/persistentvolumes", object{
		"apiVersion": "v1", "kind": "PersistentVolume",
		"metadata": object{"name": name, "labels": p.labels, "annotations": object{provisionedBy: p.name}}, "spec": spec,
	})
	return err
}
