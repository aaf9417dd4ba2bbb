package kubeadm

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/controlplane"
	"github.com/mensylisir/kubexm/steps/kubectl"
	"github.com/mensylisir/kubexm/steps/op"
	"github.com/mensylisir/kubexm/steps/pki"
	"github.com/mensylisir/kubexm/steps/runner"
)

// Token is what a node joins with.
type Token struct {
	Value  string // a secret, good for 15 minutes
	CAHash string
}

// Join carries a token from the lead to the nodes of the same run. It
// is never written to this machine's disk.
var Join = steps.NewKey[Token]("kubeadm.join")

// readiness has kubectl print each node as NAME=True, or =False or =Unknown.
const readiness = `jsonpath={range .items[*]}{.metadata.name}={.status.conditions[?(@.type=="Ready")].status} {end}`

// MintToken makes a token on the lead, when one of the nodes that are to
// join is not a node that is ready: it may have been one that was taken back, and
// is to join again. Else it gives an empty one, and nobody asks for more.
func MintToken(joining []manifest.Host) steps.Step {
	return &op.Do{
		Done: func(ctx context.Context, h *steps.Host) (bool, error) {
			out, err := kubectl.Run(ctx, h, "--request-timeout=10s", "get", "nodes", "-o", readiness)
			if runner.Refused(err) {
				return false, nil
			}
			if err != nil {
				return false, err
			}
			for _, j := range joining {
				if !slices.Contains(strings.Fields(out), j.Name+"=True") {
					return false, nil
				}
			}
			return true, Join.Put(h, Token{})
		},
		M: steps.Meta{Name: "kubeadm.mint-token", Writes: []steps.AnyKey{Join}, Always: true, Timeout: time.Minute, Retry: steps.Retry{Times: 3, Wait: 5 * time.Second}},
		Act: func(ctx context.Context, h *steps.Host) error {
			t, err := mint(ctx, h)
			if err != nil {
				return err
			}
			return Join.Put(h, t)
		},
	}
}

// known is why a host cannot join: the cluster has a node of its name that is ready.
func known(name string) error {
	return steps.Advise(errors.New("the cluster has a node of this name that is ready, and this host does not know the cluster"),
		"wait a minute and run again, if it was one; if another machine goes by this name, give this one another; else kubectl delete node %s", name)
}

// tokenTTL is how long a token lets machines join.
const tokenTTL = "15m"

// mint makes a token on a master.
func mint(ctx context.Context, h *steps.Host) (Token, error) {
	out, err := h.Exec(ctx, "kubeadm", "--kubeconfig", kubectl.AdminConf, "token", "create", "--ttl", tokenTTL, "--description", "kubexm: nodes that join")
	if err != nil {
		return Token{}, err
	}
	ca, err := h.ReadFile(ctx, controlplane.AuthorityFile)
	if err != nil {
		return Token{}, err
	}
	block, _ := pem.Decode(ca)
	if block == nil {
		return Token{}, errors.New(controlplane.AuthorityFile + " holds no certificate")
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return Token{}, fmt.Errorf("%s: %w", controlplane.AuthorityFile, err)
	}
	return Token{Value: strings.TrimSpace(string(out)), CAHash: pki.PublicKeyHash(cert)}, nil
}

// What a kubelet reaches the cluster with.
const (
	kubeletConf = "/etc/kubernetes/kubelet.conf"
	kubeletCert = "/var/lib/kubelet/pki/kubelet-client-current.pem"
)

// joinFile lies in memory, and only while kubeadm reads it: it holds the token.
const joinFile = "/run/kubexm/kubeadm-join.yaml"

// JoinWorker makes a node a worker of the cluster.
func JoinWorker(c *manifest.Cluster) steps.Step {
	return &op.Do{
		M:    steps.Meta{Name: "kubeadm.join-worker", Final: true, Reads: []steps.AnyKey{Join}, Needs: images("kube-proxy", "pause"), Timeout: 10 * time.Minute},
		Done: joined,
		Act: func(ctx context.Context, h *steps.Host) error {
			if done, err := startKubelet(ctx, h); done || err != nil {
				return err
			}
			if done, err := prepare(ctx, h, joinJob, joined); done || err != nil {
				return err
			}
			t, err := Join.Get(h)
			if err != nil {
				return err
			}
			if t.Value == "" {
				return known(h.Name)
			}
			return join(ctx, c, h, t)
		},
		Undo: func(ctx context.Context, h *steps.Host) error {
			if err := h.ClearJob(ctx, joinJob); err != nil { // it may be at work still
				return err
			}
			half, err := controlplane.Begun(ctx, h)
			if err != nil || !half {
				return err
			}
			return reset(ctx, h, false)
		},
	}
}

// join runs kubeadm join.
func join(ctx context.Context, c *manifest.Cluster, h *steps.Host, t Token) error {
	text, err := JoinConfig(c, h, t)
	if err != nil {
		return err
	}
	if _, err := h.Mkdir(ctx, "/run/kubexm", runner.Attr{Mode: 0o700}); err != nil {
		return err
	}
	if err := h.WriteFile(ctx, joinFile, text, runner.Attr{Mode: 0o600}); err != nil {
		return err
	}
	j := joinJob
	j.Argv, j.Secrets = []string{"kubeadm", "join", "--config", joinFile}, []string{t.Value}
	if err = run(ctx, h, j); err == nil {
		err = controlplane.Sync(ctx, h)
	}
	if rerr := h.Remove(context.WithoutCancel(ctx), joinFile); err == nil {
		err = rerr
	}
	return steps.Advise(err, "see `journalctl -u kubelet` on %s, and whether it reaches %s", h.Name, part.EndpointOf(c).Name())
}

// joined tells whether the kubelet has its own credentials and runs.
func joined(ctx context.Context, h *steps.Host) (bool, error) {
	if ok, err := controlplane.Written(ctx, h, kubeletConf, kubeletCert); err != nil || !ok {
		return false, err
	}
	u, err := h.Unit(ctx, "kubelet.service")
	return u.IsActive(), err
}

// startKubelet starts the kubelet of a worker that has joined, and reports whether it
// runs then. Right after a boot it may not run yet, or somebody has stopped it. Joining
// again would reset the host first.
func startKubelet(ctx context.Context, h *steps.Host) (bool, error) {
	s, err := h.Job(ctx, joinJob, 0)
	if err != nil || s.Exists { // kubeadm is at work
		return false, err
	}
	if ok, err := controlplane.Written(ctx, h, kubeletConf, kubeletCert); err != nil || !ok {
		return false, err
	}
	return awaken(ctx, h, joined, doubt)
}

// JoinConfig is the configuration of kubeadm join on h.
func JoinConfig(c *manifest.Cluster, h *steps.Host, t Token) ([]byte, error) {
	o := object{
		"apiVersion": api(c), "kind": "JoinConfiguration",
		"nodeRegistration": registration(c, h),
		"discovery": object{"bootstrapToken": object{
			"apiServerEndpoint": part.EndpointOf(c).Name(), "token": t.Value, "caCertHashes": []string{t.CAHash},
		}},
	}
	if c.Spec.RoleGroups.Has(manifest.RoleMaster, h.Name) {
		o["controlPlane"] = object{"localAPIEndpoint": listening(c, h)}
	}
	return controlplane.Encode(o)
}
