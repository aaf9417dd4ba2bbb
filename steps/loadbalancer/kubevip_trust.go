package loadbalancer

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/controlplane"
	"github.com/mensylisir/kubexm/steps/kubectl"
	"github.com/mensylisir/kubexm/steps/op"
	"github.com/mensylisir/kubexm/steps/runner"
)

// KubeVIPClients carries kube-vip's certificate from the API entry point to the masters.
var KubeVIPClients = steps.NewKey[Probe]("loadbalancer.kube-vip-client")

// kubeVIPUser is kube-vip for the API servers. It has no group with permissions.
var kubeVIPUser = client{user: "kube-vip", what: "leases of kube-vip"}

// CheckKubeVIPTrust checks whether kube-vip on a master has the cluster's CA, which authority
// contains, and a certificate that it has signed.
func CheckKubeVIPTrust(authority steps.Key[[]byte]) steps.Step {
	return &op.Do{
		M: steps.Meta{Name: "loadbalancer.check-kube-vip-trust", Always: true, ReadOnly: true, Timeout: time.Minute, Reads: []steps.AnyKey{authority}, Writes: []steps.AnyKey{Trusted}},
		Act: func(ctx context.Context, h *steps.Host) error {
			ca, err := authority.Get(h)
			if err != nil {
				return err
			}
			text, exists, err := contentOf(ctx, h, kubeVIPConf)
			if err != nil {
				return err
			}
			return Trusted.On(h.Name).Put(h, exists && trustsKubeVIP(text, ca, time.Now()))
		},
	}
}

// trustsKubeVIP reports whether a kubeconfig is of the cluster with a CA, and stays valid.
func trustsKubeVIP(text, ca []byte, now time.Time) bool {
	var conf struct {
		Clusters []struct {
			Cluster struct {
				CA []byte `json:"certificate-authority-data"`
			} `json:"cluster"`
		} `json:"clusters"`
		Users []struct {
			User struct {
				Certificate []byte `json:"client-certificate-data"`
			} `json:"user"`
		} `json:"users"`
	}
	var decoded any
	if err := yaml.Unmarshal(text, &decoded); err != nil {
		return false
	}
	plain, err := json.Marshal(decoded) // JSON has the rule that bytes are in base64
	if err != nil || json.Unmarshal(plain, &conf) != nil || len(conf.Clusters) != 1 || len(conf.Users) != 1 {
		return false
	}
	return bytes.Equal(conf.Clusters[0].Cluster.CA, ca) && isClient(conf.Users[0].User.Certificate, ca, now)
}

// SignKubeVIP has the cluster's CA sign a certificate for kube-vip, where a master has none that
// is valid. The private key is generated in this process and stored on the masters alone.
func SignKubeVIP(c *manifest.Cluster) steps.Step {
	return signClient("loadbalancer.sign-kube-vip", kubeVIPUser, part.Masters.Names(c), KubeVIPClients)
}

// AllowKubeVIP allows kube-vip to take its lease, and nothing else. The verbs are those of a lease
// lock (k8s.io/client-go/tools/leaderelection/resourcelock); a name cannot restrict create.
func AllowKubeVIP() steps.Step {
	return kubectl.Apply("loadbalancer.allow-kube-vip", nil, func(context.Context, *steps.Host) ([]byte, error) {
		object := func(kind string, rest controlplane.Object) controlplane.Object {
			rest["apiVersion"], rest["kind"] = "rbac.authorization.k8s.io/v1", kind
			rest["metadata"] = controlplane.Object{"name": kubeVIPUser.user, "namespace": "kube-system"}
			return rest
		}
		rule := func(verbs []string, names ...string) controlplane.Object {
			o := controlplane.Object{"apiGroups": []string{"coordination.k8s.io"}, "resources": []string{"leases"}, "verbs": verbs}
			if len(names) > 0 {
				o["resourceNames"] = names
			}
			return o
		}
		return controlplane.Encode(
			object("Role", controlplane.Object{"rules": []controlplane.Object{rule([]string{"get", "update"}, kubeVIPLease), rule([]string{"create"})}}),
			object("RoleBinding", controlplane.Object{
				"roleRef":  controlplane.Object{"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": kubeVIPUser.user},
				"subjects": []controlplane.Object{{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": kubeVIPUser.user}},
			}),
		)
	})
}

// kubeVIPConfText returns kube-vip's kubeconfig: the one on the host, if it is valid, otherwise one
// with the certificate that client carries.
func kubeVIPConfText(c *manifest.Cluster, authority steps.Key[[]byte], client steps.Key[Probe]) kubectl.Body {
	return func(ctx context.Context, h *steps.Host) ([]byte, error) {
		ca, err := authority.Get(h)
		if err != nil {
			return nil, op.Later(err)
		}
		ok, err := Trusted.On(h.Name).Get(h)
		if err != nil {
			return nil, op.Later(err)
		}
		text, exists, err := contentOf(ctx, h, kubeVIPConf)
		if err != nil || exists && ok {
			return text, err
		}
		p, err := client.Get(h)
		if err != nil {
			return nil, op.Later(err)
		}
		// Between the two steps of a run a retry reads what it wrote: the key is in the file then.
		if exists && len(p.Key) == 0 {
			return text, nil
		}
		if len(p.Key) == 0 {
			return nil, errors.New("kube-vip has no certificate on " + h.Name + ": the file " + kubeVIPConf + " was deleted during the run")
		}
		return controlplane.Encode(controlplane.Object{
			"apiVersion": "v1", "kind": "Config", "current-context": kubeVIPUser.user,
			"clusters": []controlplane.Object{{"name": "kubernetes", "cluster": controlplane.Object{
				"server": "https://" + net.JoinHostPort("kubernetes", strconv.Itoa(part.EndpointOf(c).Backend)), "certificate-authority-data": base64.StdEncoding.EncodeToString(ca),
			}}},
			"users": []controlplane.Object{{"name": kubeVIPUser.user, "user": controlplane.Object{
				"client-certificate-data": base64.StdEncoding.EncodeToString(p.Certificate), "client-key-data": base64.StdEncoding.EncodeToString(p.Key),
			}}},
			"contexts": []controlplane.Object{{"name": kubeVIPUser.user, "context": controlplane.Object{"cluster": "kubernetes", "user": kubeVIPUser.user}}},
		})
	}
}

// kubeVIPRuns is the pod of a kubeconfig: the kubelet has started it.
type kubeVIPRuns struct {
	op.NoNeeds
	conf kubectl.Body
}

func (kubeVIPRuns) String() string { return "pod kube-vip" }

func (p kubeVIPRuns) Want(ctx context.Context, h *steps.Host, _ bool) (*op.Change, error) {
	conf, err := p.conf(ctx, h)
	if err != nil {
		return nil, err
	}
	digest := digestOf(conf)
	if bad, err := kubeVIPMissing(ctx, h, digest); err != nil || bad == "" {
		return nil, err
	}
	return &op.Change{
		What: "start kube-vip",
		Apply: func(ctx context.Context, h *steps.Host) error {
			err := steps.Until(ctx, podTimeout, time.Second, func(ctx context.Context) error {
				switch bad, err := kubeVIPMissing(ctx, h, digest); {
				case err != nil && ctx.Err() == nil:
					return steps.Permanent(err)
				case err != nil:
					return err
				case bad != "":
					return errors.New(bad)
				}
				return nil
			})
			return steps.Advise(err, "run crictl ps -a --name kube-vip, crictl logs and journalctl -u kubelet on %s", h.Name)
		},
		Undo: func(context.Context, *steps.Host) error { return nil }, // the kubelet follows the manifest
	}, nil
}

// Gone does nothing: the pod ends with its manifest.
func (kubeVIPRuns) Gone(context.Context, *steps.Host) (*op.Change, error) { return nil, nil }

// kubeVIPMissing describes why kube-vip does not run with a kubeconfig; "" if it does.
func kubeVIPMissing(ctx context.Context, h *steps.Host, digest string) (string, error) {
	const missing = "kube-vip does not run with " + kubeVIPConf
	out, err := h.Exec(ctx, "crictl", "pods", "--state", "ready", "--label", "io.kubernetes.pod.name=kube-vip-"+h.Name, "--output", "json")
	if runner.Refused(err) { // the container runtime does not run
		return missing, nil
	}
	if err != nil {
		return "", err
	}
	var list struct {
		Items []struct {
			ID          string            `json:"id"`
			Annotations map[string]string `json:"annotations"`
		} `json:"items"`
	}
	if err := json.Unmarshal(out, &list); err != nil {
		return "", fmt.Errorf("list of pods: %w", err)
	}
	for _, p := range list.Items {
		if p.Annotations[kubeVIPDigest] != digest { // it is about to end
			continue
		}
		container, err := first(ctx, h, "ps", "--quiet", "--state", "running", "--pod", p.ID)
		if err != nil && !runner.Refused(err) {
			return "", err
		}
		if err == nil && container != "" {
			return "", nil
		}
	}
	return missing, nil
}
