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

// kubeletSigner signs what kubelets serve with, and asks somebody else whether to
// (KubeletServingSignerName of k8s.io/api, certificates/v1).
const kubeletSigner = "kubernetes.io/kubelet-serving"

// A node is that user, in that group.
const (
	nodeUser  = "system:node:"
	nodeGroup = "system:nodes"
)

// question is a CertificateSigningRequest, as far as it matters here.
type question struct {
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		SignerName string   `json:"signerName"`
		Username   string   `json:"username"` // who asked, which the API server writes
		Groups     []string `json:"groups"`
		Usages     []string `json:"usages"`
		Request    []byte   `json:"request"` // PEM
	} `json:"spec"`
	Status struct {
		Conditions []struct{ Type string } `json:"conditions"`
	} `json:"status"`
	whole json.RawMessage
}

func ask(text json.RawMessage) (question, error) {
	q := question{whole: text}
	if err := json.Unmarshal(text, &q); err != nil {
		return question{}, fmt.Errorf("certificate signing request: %w", err)
	}
	return q, nil
}

// node is who asks.
func (q question) node() string { return strings.TrimPrefix(q.Spec.Username, nodeUser) }

// unfit says why a node must not have what it asks for. What the signer looks at is
// looked at here too: it signs nothing that is not so, and then says it to nobody.
func (q question) unfit(c *manifest.Cluster) error {
	err := q.wrong(c)
	if err == nil {
		return nil
	}
	return steps.Advise(fmt.Errorf("certificate signing request %s of node %s: %w", q.Metadata.Name, q.node(), err),
		"if that is right, run kubectl certificate approve %s, or have kubelets sign their own certificates by kubeletCertificates in spec.kubernetes.hardening.relax; else look who is on that node",
		q.Metadata.Name)
}

func (q question) wrong(c *manifest.Cluster) error {
	i := slices.IndexFunc(c.Spec.Hosts, func(h manifest.Host) bool { return nodeUser+h.Name == q.Spec.Username })
	if i < 0 || !slices.Contains(q.Spec.Groups, nodeGroup) {
		return fmt.Errorf("%s is no node of the config", q.Spec.Username)
	}
	host := c.Spec.Hosts[i]
	block, rest := pem.Decode(q.Spec.Request)
	if block == nil || block.Type != "CERTIFICATE REQUEST" || len(rest) > 0 {
		return errors.New("it holds no request")
	}
	r, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return err
	}
	if err := r.CheckSignature(); err != nil {
		return fmt.Errorf("whoever asks has not the key: %w", err)
	}
	if r.Subject.CommonName != q.Spec.Username || !slices.Equal(r.Subject.Organization, []string{nodeGroup}) {
		return fmt.Errorf("it is for %s, and not for the node itself", r.Subject)
	}
	for _, u := range q.Spec.Usages {
		if !slices.Contains([]string{"digital signature", "key encipherment", "server auth"}, u) {
			return fmt.Errorf("it is for %s", u)
		}
	}
	if !slices.Contains(q.Spec.Usages, "server auth") {
		return errors.New("it is for no server")
	}
	return misnamed(c, host, r)
}

// misnamed looks at the names in a request, of which none may be another machine's.
func misnamed(c *manifest.Cluster, host manifest.Host, r *x509.CertificateRequest) error {
	for _, name := range r.DNSNames {
		if name != host.Name && name != host.Name+"."+c.Spec.Kubernetes.ClusterName {
			return fmt.Errorf("%s is no name of %s in the config", name, host.Name)
		}
	}
	own := append([]string{host.Address}, host.InternalAddress...)
	own = append(own, c.NodeAddresses(host)...)
	for _, ip := range r.IPAddresses {
		if !slices.ContainsFunc(own, func(a string) bool { return ip.Equal(net.ParseIP(a)) }) { // one address may be written in several ways
			return fmt.Errorf("%s is no address of %s in the config", ip, host.Name)
		}
	}
	if len(r.EmailAddresses)+len(r.URIs) > 0 {
		return errors.New("it has names that no server has")
	}
	if len(r.DNSNames)+len(r.IPAddresses) == 0 {
		return errors.New("it has no names")
	}
	return nil
}

// approve answers the very object that was looked at: another one that has come to
// have its name meanwhile is refused by the API server, as its uid and version differ.
func (q question) approve(ctx context.Context, h *steps.Host) error {
	var whole map[string]any
	if err := json.Unmarshal(q.whole, &whole); err != nil {
		return err
	}
	now := time.Now().UTC().Format(time.RFC3339)
	whole["status"] = map[string]any{"conditions": []map[string]any{{
		"type": "Approved", "status": "True", "reason": "KubexmApproved", "message": "its names are the node's in kubexm's config", "lastUpdateTime": now,
	}}}
	text, err := json.Marshal(whole)
	if err != nil {
		return err
	}
	return kubectl.Send(ctx, h, text, "--request-timeout=10s", "replace", "--raw",
		"/apis/certificates.k8s.io/v1/certificatesigningrequests/"+q.Metadata.Name+"/approval", "-f", "-")
}
