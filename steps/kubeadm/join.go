package kubeadm

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
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

// Token is the bootstrap token that a node joins with.
type Token struct {
	Value  string // a secret, valid for 15 minutes
	CAHash string // of the cluster CA's public key
}

// JoinToken passes a token from the first healthy master to the joining nodes of the same run.
// It is never written to a disk of the workdir host.
var JoinToken = steps.NewKey[Token]("kubeadm.join")

// MintToken creates a bootstrap token on the first healthy master if at least one of the
// joining hosts is not a Ready node. Otherwise no host has to join, and it creates none.
func MintToken(joining []manifest.Host) steps.Step {
	return &op.Do{
		Done: func(ctx context.Context, h *steps.Host) (bool, error) {
			ready, err := kubectl.NodesReady(ctx, h)
			if runner.Refused(err) {
				return false, nil
			}
			if err != nil {
				return false, err
			}
			for _, j := range joining {
				if !ready[j.Name] {
					return false, nil
				}
			}
			return true, JoinToken.Put(h, Token{})
		},
		M: steps.Meta{Name: "kubeadm.mint-token", Writes: []steps.AnyKey{JoinToken}, Always: true, Timeout: time.Minute, Retry: steps.Retry{Times: 3, Wait: 5 * time.Second}},
		Act: func(ctx context.Context, h *steps.Host) error {
			t, err := mint(ctx, h)
			if err != nil {
				return err
			}
			return JoinToken.Put(h, t)
		},
	}
}

// nameTaken is the error for a host that cannot join because the cluster has a Ready node
// of its name.
func nameTaken(name string) error {
	return steps.Advise(errors.New("the cluster has a Ready node of this name, but this host has not joined it"),
		"if this host was that node, wait a minute and run the command again; if the node is another machine, rename this host; otherwise kubectl delete node %s", name)
}

// tokenTTL is how long a token is valid.
const tokenTTL = "15m"

// mint creates a token on a master.
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
		return Token{}, errors.New(controlplane.AuthorityFile + " contains no certificate")
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return Token{}, fmt.Errorf("%s: %w", controlplane.AuthorityFile, err)
	}
	return Token{Value: strings.TrimSpace(string(out)), CAHash: pki.PublicKeyHash(cert)}, nil
}

// The files that a kubelet authenticates to the cluster with.
const (
	kubeletConf = "/etc/kubernetes/kubelet.conf"
	kubeletCert = "/var/lib/kubelet/pki/kubelet-client-current.pem"
)

// joinFile contains the token. It is in a tmpfs, and only while kubeadm runs.
const joinFile = "/run/kubexm/kubeadm-join.yaml"

// JoinWorker joins a host to the cluster as a worker, with kubeadm join.
func JoinWorker(c *manifest.Cluster) steps.Step {
	return &op.Do{
		M:    steps.Meta{Name: "kubeadm.join-worker", Final: true, Reads: []steps.AnyKey{JoinToken}, Needs: images("kube-proxy", "pause"), Timeout: 10 * time.Minute},
		Done: workerExists,
		Act: func(ctx context.Context, h *steps.Host) error {
			if done, err := startKubelet(ctx, h); done || err != nil {
				return err
			}
			if done, err := prepare(ctx, h, joinJob, joined); done || err != nil {
				return err
			}
			t, err := JoinToken.Get(h)
			if err != nil {
				return err
			}
			if t.Value == "" {
				return nameTaken(h.Name)
			}
			return join(ctx, c, h, t)
		},
		Undo: func(ctx context.Context, h *steps.Host) error {
			if err := h.ClearJob(ctx, joinJob); err != nil { // it may still be running
				return err
			}
			half, err := controlplane.Started(ctx, h)
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
	return steps.Advise(err, "run journalctl -u kubelet on %s, and check that it reaches %s", h.Name, part.EndpointOf(c).Name())
}

// joined reports whether the kubelet has its own credentials and runs.
func joined(ctx context.Context, h *steps.Host) (bool, error) {
	if ok, err := controlplane.Written(ctx, h, kubeletConf, kubeletCert); err != nil || !ok {
		return false, err
	}
	u, err := h.Unit(ctx, "kubelet.service")
	return u.IsActive(), err
}

// workerExists reports whether a worker has joined and nothing of kubeadm is left: a connection
// that broke when kubeadm had ended leaves its job.
func workerExists(ctx context.Context, h *steps.Host) (bool, error) {
	if ok, err := joined(ctx, h); err != nil || !ok {
		return false, err
	}
	s, err := h.Job(ctx, joinJob, 0)
	return err == nil && !s.Exists, err
}

// startKubelet starts the kubelet of a worker that has joined, and reports whether it runs
// then. It may not run yet after a boot, or a person stopped it. Another join would reset
// the host first.
func startKubelet(ctx context.Context, h *steps.Host) (bool, error) {
	s, err := h.Job(ctx, joinJob, 0)
	if err != nil || s.Exists { // kubeadm may be running
		return false, err
	}
	if ok, err := controlplane.Written(ctx, h, kubeletConf, kubeletCert); err != nil || !ok {
		return false, err
	}
	return startAndWait(ctx, h, joined, unknownTimeout)
}

// JoinConfig returns the configuration of kubeadm join on h.
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
