package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// names of OpenEBS's.
const (
	localName     = "openebs.io/local"
	configuration = "cas.openebs.io/config"
	hostname      = "kubernetes.io/hostname"
)

// settings are what the environment says.
type settings struct{ namespace, account, basePath, helperImage string }

// local are volumes in a folder of a node. Pods of the helper image create and remove it.
type local struct {
	settings
	api *client
}

// readSettings reads the environment as cmd/provisioner-localpv/app/env.go does.
func readSettings(environ []string) (settings, error) {
	e := variables(environ, "OPENEBS_", "NODE_NAME", "LEADER_ELECTION_ENABLED")
	s := settings{e.take("OPENEBS_NAMESPACE"), e.take("OPENEBS_SERVICE_ACCOUNT"), e.take("OPENEBS_IO_BASE_PATH"), e.take("OPENEBS_IO_HELPER_IMAGE")}
	e.take("NODE_NAME")
	e.take("OPENEBS_IO_INSTALLER_TYPE")
	e.is("OPENEBS_IO_ENABLE_ANALYTICS", "false", "it would send reports to a service on the internet")
	e.is("LEADER_ELECTION_ENABLED", "true", "two of them could provide one volume")
	return s, e.done()
}

func newLocal(ctx context.Context, c *client, environ []string) (*provisioner, error) {
	s, err := readSettings(environ)
	if err != nil {
		return nil, err
	}
	if err := mayDoAll(ctx, c, s.namespace, append(slices.Clone(ofController),
		right{"", "persistentvolumes", false, []string{"update"}}, right{"", "pods", true, []string{"get", "create", "delete"}},
		right{"coordination.k8s.io", "leases", true, []string{"get", "create", "update"}})); err != nil {
		return nil, err
	}
	if err := c.lead(ctx, s.namespace, localName); err != nil {
		return nil, err
	}
	return &provisioner{kind: &local{s, c}, name: localName, labels: object{"openebs.io/cas-type": "local-hostpath"}, api: c}, nil
}

// provides waits for the node of the claim's first pod.
func (l *local) provides(notes object) bool { return notes[selectedNode] != nil }

func (l *local) create(ctx context.Context, claim, class object, name string) (object, error) {
	node := fmt.Sprint(at(claim, "metadata", "annotations", selectedNode))
	base, err := basePath(fmt.Sprint(at(class, "metadata", "annotations", configuration)), l.basePath)
	if err != nil {
		return nil, err
	}
	if err := l.onNode(ctx, "init", node, name, base, "mkdir", "-m", "0777", "-p"); err != nil {
		return nil, err
	}
	return object{
		"local": object{"path": path.Join(base, name), "fsType": ""},
		"nodeAffinity": object{"required": object{"nodeSelectorTerms": []any{object{
			"matchExpressions": []any{object{"key": hostname, "operator": "In", "values": []any{node}}},
		}}}},
	}, nil
}

func (l *local) remove(ctx context.Context, v object) error {
	folder := fmt.Sprint(at(v, "spec", "local", "path"))
	terms, _ := at(v, "spec", "nodeAffinity", "required", "nodeSelectorTerms").([]any)
	if len(terms) != 1 {
		return errors.New("cannot find affinited node details")
	}
	term, _ := terms[0].(object)
	expressions, _ := term["matchExpressions"].([]any)
	first, _ := expressions[0].(object)
	nodes, _ := first["values"].([]any)
	return l.onNode(ctx, "cleanup", fmt.Sprint(nodes[0]), path.Base(folder), path.Dir(folder), "rm", "-rf")
}

// onNode runs a command with the path of a volume in a pod on a node, and waits for two minutes as
// upstream does (cmd/provisioner-localpv/app/helper_hostpath.go).
func (l *local) onNode(ctx context.Context, what, node, volume, base string, argv ...string) error {
	name, pods := what+"-"+volume, "/api/v1/namespaces/"+l.namespace+"/pods"
	command := append(slices.Clone(argv), path.Join("/data", volume))
	if _, err := l.api.send(ctx, http.MethodPost, pods, object{
		"apiVersion": "v1", "kind": "Pod", "metadata": object{"name": name},
		"spec": object{
			"restartPolicy": "Never", "serviceAccountName": l.account,
			"affinity": object{"nodeAffinity": object{"requiredDuringSchedulingIgnoredDuringExecution": object{"nodeSelectorTerms": []any{object{
				"matchExpressions": []any{object{"key": hostname, "operator": "In", "values": []any{node}}},
			}}}}},
			"containers": []any{object{
				"name": "local-path-" + what, "image": l.helperImage, "command": command, "securityContext": object{"privileged": true},
				"volumeMounts": []any{object{"name": "data", "mountPath": "/data/"}, object{"name": "dev", "mountPath": "/dev/"}},
			}},
			"volumes": []any{object{"name": "data", "hostPath": object{"path": base}}, object{"name": "dev", "hostPath": object{"path": "/dev/"}}},
		},
	}); err != nil {
		return err
	}
	defer func() { _, _ = l.api.send(context.WithoutCancel(ctx), http.MethodDelete, pods+"/"+name, nil) }()
	for range 120 {
		pod, err := l.api.send(ctx, http.MethodGet, pods+"/"+name, nil)
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

// basePath returns the folder of volumes that a StorageClass names in its configuration.
func basePath(config, otherwise string) (string, error) {
	var entries []struct {
		Name  string `yaml:"name"`
		Value string `yaml:"value"`
	}
	d := yaml.NewDecoder(strings.NewReader(config))
	d.KnownFields(true)
	if err := d.Decode(&entries); err != nil {
		return "", fmt.Errorf("%s: %w", configuration, err)
	}
	kind, base := "", otherwise
	for _, e := range entries {
		switch e.Name {
		case "StorageType":
			kind = e.Value
		case "BasePath":
			base = e.Value
		default:
			return "", fmt.Errorf("%s: unknown setting %s", configuration, e.Name)
		}
	}
	if kind != "hostpath" || !strings.HasPrefix(base, "/") || strings.Count(base, "/") < 2 {
		return "", fmt.Errorf("%s: storage type %q in %q: PV folder is not under a base path", configuration, kind, base)
	}
	return base, nil
}
