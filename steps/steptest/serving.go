package steptest

import (
	"cmp"
	"crypto/ed25519"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net"
	"path"
	"strings"

	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
)

// servingCert is the path of a kubelet's serving certificate.
const servingCert = "/var/lib/kubelet/pki/kubelet-server-current.pem"

// requestKind is the kind of a request for a serving certificate.
const requestKind = "CertificateSigningRequest"

// asks makes the kubelet of a host request a serving certificate if it has none, as it does
// at its start.
func (k *Kube) asks(s *conntest.Sim) {
	for name, h := range k.hosts {
		if h == s && k.cluster.KubeletsAreSigned() && s.Read(servingCert) == "" && k.get(k.question(name)) == nil {
			k.put(k.request(name))
		}
	}
}

// question returns the identity of a kubelet's request.
func (*Kube) question(host string) Object {
	return newObject("certificates.k8s.io/v1", requestKind, "", "csr-"+host)
}

// requests prints requests of kubelets: by name as JSON, or the pending ones of a signer,
// one per line. A kubelet whose certificate was lost in a power failure has requested
// another one at its start.
func (k *Kube) requests(c call) connector.Result {
	if names := c.words[2:]; len(names) > 0 {
		var found []Object
		for _, name := range names {
			if o := k.named("certificates.k8s.io/v1", requestKind, "", name); o != nil {
				found = append(found, o)
			}
		}
		return printed(found, len(names) == 1)
	}
	for _, o := range k.all("Node") {
		if s := k.hosts[word(o, "metadata", "name")]; s != nil && (k.stands || s.Unit("kubelet.service").Active) {
			k.asks(s)
		}
	}
	signer, ok := strings.CutPrefix(c.flags["--field-selector"], "spec.signerName=")
	if !ok || !strings.HasPrefix(c.flags["-o"], "go-template={{range .items}}{{if not (and .status .status.conditions)}}") {
		return failed(1, "kube: nobody taught me kubectl get %s %v", strings.Join(c.words, " "), c.flags)
	}
	var b strings.Builder
	for _, o := range k.all(requestKind) {
		if answered, _ := at(o, "status", "conditions").([]any); len(answered) == 0 && word(o, "spec", "signerName") == signer {
			fmt.Fprintf(&b, "%s %s %s\n", cmp.Or(word(o, "metadata", "creationTimestamp"), "2026-01-01T00:00:00Z"), word(o, "metadata", "name"), word(o, "spec", "username"))
		}
	}
	return prints("%s", b.String())
}

// request returns the request of a host's kubelet.
func (k *Kube) request(host string) Object {
	t := &x509.CertificateRequest{Subject: pkix.Name{CommonName: "system:node:" + host, Organization: []string{"system:nodes"}}, DNSNames: []string{host}}
	for _, h := range k.cluster.Spec.Hosts {
		if h.Name != host {
			continue
		}
		for _, a := range k.cluster.NodeAddresses(h) {
			t.IPAddresses = append(t.IPAddresses, net.ParseIP(a))
		}
	}
	return Request("csr-"+host, "system:node:"+host, t)
}

// Request returns a CertificateSigningRequest of a user for a kubelet serving certificate
// with the template t. It is always the same.
func Request(name, user string, t *x509.CertificateRequest) Object {
	key := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	der, err := x509.CreateCertificateRequest(nil, t, key)
	if err != nil {
		return nil
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
	return merged(newObject("certificates.k8s.io/v1", requestKind, "", name), Object{
		"metadata": Object{"uid": "uid-of-" + name, "resourceVersion": "1"},
		"spec": Object{
			"signerName": "kubernetes.io/kubelet-serving", "username": user, "groups": []any{"system:nodes", "system:authenticated"},
			"usages": []any{"digital signature", "server auth"}, "request": base64.StdEncoding.EncodeToString(text),
		},
	})
}

// raw simulates `kubectl --raw`.
func (k *Kube) raw(verb string, c call) connector.Result {
	url := c.flags["--raw"]
	if verb == "get" && strings.HasPrefix(url, "/readyz") { // of a server that does not answer, kubectl has said so
		if url == "/readyz" {
			return prints("ok")
		}
		return prints("[+]ping ok\nreadyz check passed\n")
	}
	if host, ok := strings.CutPrefix(url, "/api/v1/nodes/"); verb == "get" && ok {
		host, of, _ := strings.Cut(host, "/")
		if of == "proxy/metrics" {
			return k.metrics(host)
		}
		return k.healthz(host)
	}
	if verb == "create" {
		if res, ok := k.eviction(url, c.stdin); ok {
			return res
		}
	}
	switch {
	case verb == "replace" && path.Base(url) == "approval":
		return k.approve(path.Base(path.Dir(url)), c.stdin)
	case verb == "create" && path.Base(url) == "certificatesigningrequests":
		return k.request509(c.stdin)
	case verb == "delete" && path.Base(path.Dir(url)) == "certificatesigningrequests":
		o := k.named("certificates.k8s.io/v1", requestKind, "", path.Base(url))
		if o == nil {
			return failed(1, "Error from server (NotFound): certificatesigningrequests.certificates.k8s.io %q not found", path.Base(url))
		}
		k.drop(o)
		return prints("{}")
	}
	return failed(1, "kube: nobody taught me kubectl %s --raw %s", verb, url)
}

// healthz returns a kubelet's health through the API server, which requires its serving
// certificate.
func (k *Kube) healthz(host string) connector.Result {
	s := k.hosts[host]
	switch {
	case k.named("v1", "Node", "", host) == nil:
		return failed(1, "Error from server (NotFound): nodes %q not found", host)
	case s == nil && k.stands:
		return prints("ok")
	case s == nil || !s.Unit("kubelet.service").Active && !k.stands:
		return failed(1, "Error from server (ServiceUnavailable): dial tcp: connection refused")
	case k.cluster.KubeletsAreSigned() && s.Read(servingCert) == "":
		return failed(1, "Error from server (ServiceUnavailable): remote error: tls: internal error")
	}
	return prints("ok")
}

// reported is when kubelets have reported the status of their nodes.
const reported = "2026-01-01T00:00:00Z"

// metrics returns those of a kubelet's metrics that kubexm reads.
func (k *Kube) metrics(host string) connector.Result {
	if res := k.healthz(host); res.Exit != 0 {
		return res
	}
	start := "1.76e+09" // before reported
	if k.Silent[host] {
		start = "1.77e+09"
	}
	return prints("# HELP process_start_time_seconds Start time of the process since unix epoch in seconds.\nprocess_start_time_seconds %s\n", start)
}

// throughKubelet simulates requests that the API server forwards to the kubelet of a pod's
// node. The name of a control plane pod ends with its node's name.
func (k *Kube) throughKubelet(c call) connector.Result {
	for host := range k.hosts {
		if len(c.words) > 1 && strings.HasSuffix(c.words[1], "-"+host) {
			if res := k.healthz(host); res.Exit != 0 {
				return res
			}
		}
	}
	return failed(1, "kube: nobody taught me kubectl %s", strings.Join(c.words, " "))
}

// approve approves and signs a request. The request is deleted immediately; the real
// controller deletes it after an hour.
func (k *Kube) approve(name string, text []byte) connector.Result {
	live := k.named("certificates.k8s.io/v1", requestKind, "", name)
	if live == nil {
		return failed(1, "Error from server (NotFound): certificatesigningrequests.certificates.k8s.io %q not found", name)
	}
	var o Object
	if err := json.Unmarshal(text, &o); err != nil {
		return failed(1, "error: %v", err)
	}
	for _, key := range []string{"uid", "resourceVersion"} {
		if word(o, "metadata", key) != word(live, "metadata", key) {
			return failed(1, "Error from server (Conflict): the object has been modified; please apply your changes to the latest version")
		}
	}
	conditions, ok := at(o, "status", "conditions").([]any)
	if !ok || len(conditions) != 1 || word(conditions[0], "type") != "Approved" || word(conditions[0], "status") != "True" {
		return failed(1, "Error from server (Invalid): status.conditions")
	}
	if word(live, "spec", "signerName") == "kubernetes.io/kube-apiserver-client" {
		return k.issue(live, conditions)
	}
	host := strings.TrimPrefix(word(live, "spec", "username"), "system:node:")
	if s := k.hosts[host]; s != nil {
		s.AddFile(servingCert, "certificate and key of "+name+"\n", 0o600)
	}
	k.drop(live)
	return prints("%s", text)
}
