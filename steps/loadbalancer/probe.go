package loadbalancer

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"slices"
	"time"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/kubectl"
	"github.com/mensylisir/kubexm/steps/op"
)

// Probes carries the certificate of the health checks from the API entry point to the load
// balancer hosts.
var Probes = steps.NewKey[Probe]("loadbalancer.probe")

const (
	// probeUser is the request's name, and the user that API servers see.
	probeUser = "kubexm-loadbalancer"
	// probeGroup may read the health endpoints of API servers and nothing else of
	// importance: the ClusterRole system:monitoring, which API servers create
	// (plugin/pkg/auth/authorizer/rbac/bootstrappolicy of Kubernetes).
	probeGroup = "system:monitoring"
	// clientSigner signs client certificates that were approved (KubeAPIServerClientSignerName
	// of k8s.io/api, certificates/v1).
	clientSigner = "kubernetes.io/kube-apiserver-client"

	requests = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
)

// SignProbe has the cluster's CA sign a client certificate for the health checks, where a
// load balancer has none that is valid. The private key is generated in this process and
// stored on the load balancers alone.
func SignProbe(c *manifest.Cluster) steps.Step {
	return signProbe("loadbalancer.sign-probe", part.Balancers.Names(c), Probes)
}

// client is a user of the cluster that is not a node.
type client struct {
	user  string // in the certificate, and the name of the request for it
	group string // in the certificate; "" for none
	what  string // for people: what the certificate is for
}

var prober = client{probeUser, probeGroup, "health checks of the load balancers"}

// signProbe puts a certificate into out for the load balancers on some hosts.
func signProbe(name string, hosts []string, out steps.Key[Probe]) steps.Step {
	return signClient(name, prober, hosts, out)
}

// signClient puts a certificate of a client into out, if one of the hosts has none that is
// valid.
func signClient(name string, who client, hosts []string, out steps.Key[Probe]) steps.Step {
	return &op.Do{
		M: steps.Meta{Name: name, Timeout: kubectl.DefaultTimeout + time.Minute, Always: true, Reads: []steps.AnyKey{Trusted}, Writes: []steps.AnyKey{out}},
		Done: func(_ context.Context, h *steps.Host) (bool, error) {
			for _, b := range hosts {
				if slices.Contains(h.Away, b) { // its certificate was not checked, and nobody could write another one
					continue
				}
				if ok, err := Trusted.On(b).Get(h); err != nil || !ok {
					return false, nil //nolint:nilerr // not checked yet: a dry run
				}
			}
			return true, out.Put(h, Probe{})
		},
		Act: func(ctx context.Context, h *steps.Host) error {
			key, request, err := newRequest(who)
			if err != nil {
				return err
			}
			var cert []byte
			err = kubectl.Until(ctx, h, func(ctx context.Context, h *steps.Host) (string, error) {
				var err error
				cert, err = signed(ctx, h, who, request)
				if err == nil && len(cert) == 0 {
					return "the controller manager has not signed the certificate signing request " + who.user, nil
				}
				return "", err
			}, "see `kubectl get csr "+who.user+" -o yaml` and the log of the controller manager on %s")
			if err != nil {
				return err
			}
			if _, err := kubectl.Run(ctx, h, "--request-timeout=10s", "delete", "--raw", requests+"/"+who.user); err != nil {
				return err
			}
			return out.Put(h, Probe{Certificate: cert, Key: key})
		},
		Undo: op.Unwound,
	}
}

// newRequest returns a private key and a request for its certificate, both as PEM.
func newRequest(who client) (key, request []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("key for the %s: %w", who.what, err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, nil, fmt.Errorf("key for the %s: %w", who.what, err)
	}
	subject := pkix.Name{CommonName: who.user}
	if who.group != "" {
		subject.Organization = []string{who.group}
	}
	csr, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: subject}, private)
	if err != nil {
		return nil, nil, fmt.Errorf("certificate request for the %s: %w", who.what, err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: csr}), nil
}

// object is a CertificateSigningRequest.
type object struct {
	APIVersion string         `json:"apiVersion"`
	Kind       string         `json:"kind"`
	Metadata   map[string]any `json:"metadata"`
	Spec       spec           `json:"spec"`
	Status     status         `json:"status,omitzero"`
}

type spec struct {
	Request    []byte   `json:"request"`
	SignerName string   `json:"signerName"`
	Usages     []string `json:"usages"`
}

type status struct {
	Conditions  []map[string]any `json:"conditions,omitempty"`
	Certificate []byte           `json:"certificate,omitempty"`
}

// signed brings the request one step further: it is created, approved, and its certificate
// read. A request of that name with another key is left by an interrupted run, and is deleted.
func signed(ctx context.Context, h *steps.Host, who client, request []byte) (cert []byte, err error) {
	at := requests + "/" + who.user
	o, err := read(ctx, h, who)
	if err != nil {
		return nil, err
	}
	if o != nil && string(o.Spec.Request) != string(request) {
		if _, err := kubectl.Run(ctx, h, "--request-timeout=10s", "delete", "--raw", at); err != nil {
			return nil, err
		}
		o = nil
	}
	if o == nil {
		text, err := json.Marshal(object{
			APIVersion: "certificates.k8s.io/v1", Kind: "CertificateSigningRequest", Metadata: map[string]any{"name": who.user},
			Spec: spec{Request: request, SignerName: clientSigner, Usages: []string{"digital signature", "client auth"}},
		})
		if err != nil {
			return nil, err
		}
		if err := kubectl.Send(ctx, h, text, "--request-timeout=10s", "create", "--raw", requests, "-f", "-"); err != nil {
			return nil, err
		}
		if o, err = read(ctx, h, who); err != nil || o == nil {
			return nil, err
		}
	}
	if len(o.Status.Conditions) > 0 {
		return o.Status.Certificate, nil
	}
	o.Status.Conditions = []map[string]any{{
		"type": "Approved", "status": "True", "reason": "KubexmApproved", "message": who.what, "lastUpdateTime": time.Now().UTC().Format(time.RFC3339),
	}}
	text, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	return nil, kubectl.Send(ctx, h, text, "--request-timeout=10s", "replace", "--raw", at+"/approval", "-f", "-")
}

// read returns the request; nil where there is none.
func read(ctx context.Context, h *steps.Host, who client) (*object, error) {
	out, err := kubectl.Run(ctx, h, "--request-timeout=10s", "get", "--ignore-not-found", "-o", "json", "certificatesigningrequests", who.user)
	if err != nil || out == "" {
		return nil, err
	}
	var o object
	if err := json.Unmarshal([]byte(out), &o); err != nil {
		return nil, fmt.Errorf("certificate signing request %s: %w", who.user, err)
	}
	return &o, nil
}
