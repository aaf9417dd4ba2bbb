package cluster

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/kubectl"
)

// kubeletSigner signs the serving certificates of kubelets once a request is approved
// (KubeletServingSignerName of k8s.io/api, certificates/v1).
const kubeletSigner = "kubernetes.io/kubelet-serving"

// The user name prefix and the group of a node.
const (
	nodeUser  = "system:node:"
	nodeGroup = "system:nodes"
)

// signingRequest holds the fields of a CertificateSigningRequest that kubexm reads.
type signingRequest struct {
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		SignerName string   `json:"signerName"`
		Username   string   `json:"username"` // the requesting user, set by the API server
		Groups     []string `json:"groups"`
		Usages     []string `json:"usages"`
		Request    []byte   `json:"request"` // PEM
	} `json:"spec"`
	Status struct {
		Conditions []struct{ Type string } `json:"conditions"`
	} `json:"status"`
	object json.RawMessage
}

func parseRequest(text json.RawMessage) (signingRequest, error) {
	q := signingRequest{object: text}
	if err := json.Unmarshal(text, &q); err != nil {
		return signingRequest{}, fmt.Errorf("certificate signing request: %w", err)
	}
	return q, nil
}

// node returns the name of the requesting node.
func (q signingRequest) node() string { return strings.TrimPrefix(q.Spec.Username, nodeUser) }

// unfit returns why the request must not be approved; nil if it may be. It includes the
// conditions of the signer, which drops requests that do not meet them without an error.
func (q signingRequest) unfit(c *manifest.Cluster) error {
	err := q.wrong(c)
	if err == nil {
		return nil
	}
	return steps.Advise(fmt.Errorf("certificate signing request %s of node %s: %w", q.Metadata.Name, q.node(), err),
		"if the request is legitimate, run kubectl certificate approve %s, or add kubeletCertificates to spec.kubernetes.hardening.relax for self-signed kubelet certificates; otherwise find out who has access to that node",
		q.Metadata.Name)
}

func (q signingRequest) wrong(c *manifest.Cluster) error {
	i := slices.IndexFunc(c.Spec.Hosts, func(h manifest.Host) bool { return nodeUser+h.Name == q.Spec.Username })
	if i < 0 || !slices.Contains(q.Spec.Groups, nodeGroup) {
		return fmt.Errorf("%s is not a node of the config", q.Spec.Username)
	}
	host := c.Spec.Hosts[i]
	block, rest := pem.Decode(q.Spec.Request)
	if block == nil || block.Type != "CERTIFICATE REQUEST" || len(rest) > 0 {
		return errors.New("it contains no PEM certificate request")
	}
	r, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return err
	}
	if err := r.CheckSignature(); err != nil {
		return fmt.Errorf("it is not signed with the key that it is for: %w", err)
	}
	if r.Subject.CommonName != q.Spec.Username || !slices.Equal(r.Subject.Organization, []string{nodeGroup}) {
		return fmt.Errorf("its subject is %s, not the node itself", r.Subject)
	}
	for _, u := range q.Spec.Usages {
		if !slices.Contains([]string{"digital signature", "key encipherment", "server auth"}, u) {
			return fmt.Errorf("it requests the usage %q", u)
		}
	}
	if !slices.Contains(q.Spec.Usages, "server auth") {
		return errors.New("it does not request the usage \"server auth\"")
	}
	return misnamed(c, host, r)
}

// misnamed checks that all names and addresses in a request are the host's.
func misnamed(c *manifest.Cluster, host manifest.Host, r *x509.CertificateRequest) error {
	for _, name := range r.DNSNames {
		if name != host.Name && name != host.Name+"."+c.Spec.Kubernetes.ClusterName {
			return fmt.Errorf("%s is not a name of %s in the config", name, host.Name)
		}
	}
	own := append([]string{host.Address}, host.InternalAddress...)
	own = append(own, c.NodeAddresses(host)...)
	for _, ip := range r.IPAddresses {
		if !slices.ContainsFunc(own, func(a string) bool { return ip.Equal(net.ParseIP(a)) }) { // one address may be written in several ways
			return fmt.Errorf("%s is not an address of %s in the config", ip, host.Name)
		}
	}
	if len(r.EmailAddresses)+len(r.URIs) > 0 {
		return errors.New("it has e-mail addresses or URIs, which a server certificate must not have")
	}
	if len(r.DNSNames)+len(r.IPAddresses) == 0 {
		return errors.New("it has neither DNS names nor IP addresses")
	}
	return nil
}

// approve approves exactly the object that was checked. If another one has taken its name
// meanwhile, the API server rejects the update, because uid and resourceVersion differ.
func (q signingRequest) approve(ctx context.Context, h *steps.Host) error {
	var object map[string]any
	if err := json.Unmarshal(q.object, &object); err != nil {
		return err
	}
	now := time.Now().UTC().Format(time.RFC3339)
	object["status"] = map[string]any{"conditions": []map[string]any{{
		"type": "Approved", "status": "True", "reason": "KubexmApproved", "message": "its names are the node's in kubexm's config", "lastUpdateTime": now,
	}}}
	text, err := json.Marshal(object)
	if err != nil {
		return err
	}
	return kubectl.Send(ctx, h, text, "--request-timeout=10s", "replace", "--raw",
		"/apis/certificates.k8s.io/v1/certificatesigningrequests/"+q.Metadata.Name+"/approval", "-f", "-")
}
