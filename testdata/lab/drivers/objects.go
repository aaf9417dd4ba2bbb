package drivers

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

//go:embed objects.yaml
var objects []byte

// replicas of the web server, as objects.yaml has it.
const replicas = 3

// made is what the probers and the watcher need to know of what was made.
type made struct {
	clusterIP string // host:port
	nodePort  int
	token     string // of the watcher's account
}

// create makes the namespace anew and all that is in it. What a broken run has left of
// it goes first.
func (d *Drivers) create(ctx context.Context) (m made, err error) {
	if err := d.remove(ctx); err != nil {
		return m, fmt.Errorf("remove what an earlier run left: %w", err)
	}
	post := func(path string, body, into any) error {
		within, cancel := context.WithTimeout(ctx, askTimeout)
		defer cancel()
		return d.admin.ask(within, http.MethodPost, path, plainJSON, body, into)
	}
	if err := post("/api/v1/namespaces", map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": namespace}}, nil); err != nil {
		return m, fmt.Errorf("create namespace %s: %w", namespace, err)
	}
	for all := yaml.NewDecoder(bytes.NewReader(bytes.ReplaceAll(objects, []byte("IMAGE"), []byte(d.config.Image)))); ; {
		var object map[string]any
		if err := all.Decode(&object); err == io.EOF {
			break
		} else if err != nil {
			return m, fmt.Errorf("objects.yaml: %w", err)
		}
		var got struct {
			Spec struct {
				ClusterIP string `json:"clusterIP"`
				Ports     []struct {
					Port     int `json:"port"`
					NodePort int `json:"nodePort"`
				} `json:"ports"`
			} `json:"spec"`
		}
		if err := post(collection(object), object, &got); err != nil {
			return m, fmt.Errorf("create %s: %w", object["kind"], err)
		}
		if object["kind"] == "Service" {
			if len(got.Spec.Ports) != 1 || got.Spec.Ports[0].NodePort == 0 || got.Spec.ClusterIP == "" {
				return m, fmt.Errorf("the Service has no port of nodes or no cluster IP: %+v", got.Spec)
			}
			m.nodePort = got.Spec.Ports[0].NodePort
			m.clusterIP = net.JoinHostPort(got.Spec.ClusterIP, strconv.Itoa(got.Spec.Ports[0].Port))
		}
	}
	var token struct {
		Status struct {
			Token string `json:"token"`
		} `json:"status"`
	}
	// For a day: an operation takes less, and a token that ends shows nothing of it.
	request := map[string]any{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": map[string]any{"expirationSeconds": 24 * 60 * 60}}
	if err := post(inside+"/serviceaccounts/watcher/token", request, &token); err != nil {
		return m, fmt.Errorf("create the watcher's token: %w", err)
	}
	m.token = token.Status.Token
	return m, nil
}

// collection gives the path that an object is posted to.
func collection(object map[string]any) string {
	version, kind := fmt.Sprint(object["apiVersion"]), fmt.Sprint(object["kind"])
	root := "/apis/" + version
	if version == "v1" {
		root = "/api/v1"
	}
	return root + "/namespaces/" + namespace + "/" + strings.ToLower(kind) + "s"
}

// remove deletes the namespace with all that is in it, and returns when it is gone.
func (d *Drivers) remove(ctx context.Context) error {
	return until(ctx, d.config.Settle, func() error {
		within, cancel := context.WithTimeout(ctx, askTimeout)
		defer cancel()
		err := d.admin.ask(within, http.MethodDelete, inside, "", nil, nil)
		if code(err) == http.StatusNotFound {
			return nil
		}
		if err == nil || code(err) == http.StatusConflict { // it is being deleted
			err = fmt.Errorf("namespace %s is still there after %s", namespace, d.config.Settle)
		}
		return err
	})
}

// ready waits until every replica of the web server is.
func (d *Drivers) ready(ctx context.Context) error {
	return until(ctx, d.config.Settle, func() error {
		within, cancel := context.WithTimeout(ctx, askTimeout)
		defer cancel()
		var got struct {
			Status struct {
				AvailableReplicas int `json:"availableReplicas"`
			} `json:"status"`
		}
		err := d.admin.ask(within, http.MethodGet, "/apis/apps/v1/namespaces/"+namespace+"/deployments/web", "", nil, &got)
		if err == nil && got.Status.AvailableReplicas < replicas {
			err = fmt.Errorf("%d of %d web servers are available", got.Status.AvailableReplicas, replicas)
		}
		return err
	})
}

// nodes gives the addresses whose NodePort is asked.
func (d *Drivers) nodes(ctx context.Context) ([]string, error) {
	if len(d.config.Nodes) > 0 {
		return d.config.Nodes, nil
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	var list struct {
		Items []struct {
			Status struct {
				Addresses []struct{ Type, Address string } `json:"addresses"`
			} `json:"status"`
		} `json:"items"`
	}
	if err := d.admin.ask(ctx, http.MethodGet, "/api/v1/nodes", "", nil, &list); err != nil {
		return nil, err
	}
	var all []string
	for _, node := range list.Items {
		for _, a := range node.Status.Addresses {
			if a.Type == "InternalIP" {
				all = append(all, a.Address)
				break // a second one is of the other family
			}
		}
	}
	if len(all) == 0 {
		return nil, errors.New("no node has an internal address")
	}
	return all, nil
}

// answers waits until a prober has had an answer of each target, once.
func (d *Drivers) answers(ctx context.Context, p *prober) error {
	for n := range p.targets {
		if err := until(ctx, d.config.Settle, func() error { return p.probe(ctx, n) }); err != nil {
			return fmt.Errorf("%s: %w", p.way, err)
		}
	}
	return nil
}

// caughtUp waits until the watch has shown every acknowledged write.
func (d *Drivers) caughtUp(ctx context.Context) {
	for began := time.Now(); d.ledger.missing() > 0 && time.Since(began) < d.config.Settle; {
		if !pause(ctx, 20*time.Millisecond) {
			return
		}
	}
}
