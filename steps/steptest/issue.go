package steptest

import (
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"time"

	"github.com/mensylisir/kubexm/steps/connector"
)

// request509 creates a CertificateSigningRequest.
func (k *Kube) request509(text []byte) connector.Result {
	var o Object
	if err := json.Unmarshal(text, &o); err != nil {
		return failed(1, "error: %v", err)
	}
	name := word(o, "metadata", "name")
	if k.named("certificates.k8s.io/v1", requestKind, "", name) != nil {
		return failed(1, "Error from server (AlreadyExists): certificatesigningrequests.certificates.k8s.io %q already exists", name)
	}
	k.put(merged(o, Object{"metadata": Object{"uid": "uid-of-" + name, "resourceVersion": "1"}}))
	return prints("%s", text)
}

// issue has the cluster's CA sign what an approved request for a client certificate asks for.
func (k *Kube) issue(live Object, conditions []any) connector.Result {
	pemText, err := base64.StdEncoding.DecodeString(word(live, "spec", "request"))
	if err != nil {
		return failed(1, "Error from server (Invalid): spec.request: %v", err)
	}
	block, _ := pem.Decode(pemText)
	if block == nil {
		return failed(1, "Error from server (Invalid): spec.request")
	}
	r, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return failed(1, "Error from server (Invalid): spec.request: %v", err)
	}
	parentBlock, _ := pem.Decode([]byte(Authority()))
	parent, err := x509.ParseCertificate(parentBlock.Bytes)
	if err != nil {
		return failed(1, "%v", err)
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(3), Subject: r.Subject, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(365 * 24 * time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, leaf, parent, r.PublicKey, authorityKey())
	if err != nil {
		return failed(1, "%v", err)
	}
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	signed := merged(live, Object{"status": Object{"conditions": conditions, "certificate": base64.StdEncoding.EncodeToString(cert)}})
	k.put(signed)
	return prints("{}")
}
