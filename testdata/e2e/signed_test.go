package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net"
	"strings"
	"testing"
)

// kubeletsAreSigned looks at what kubelets serve with. Then the node of the last host
// asks for a certificate in its own names and for one in the API server's: the next run
// approves the first alone.
func (s *labSite) kubeletsAreSigned(t testing.TB, config string) {
	t.Helper()
	for _, h := range s.Hosts[1:] { // the first is the registry's
		url := "https://" + h.Address + ":10250/pods"
		if got := s.on(t, s.masters[0], "curl -s --cacert /etc/kubernetes/pki/ca.crt -o /dev/null -w '%{http_code}' --max-time 10 "+url); got != "401" {
			t.Errorf("the kubelet of %s, held against the cluster's CA: %s", h.Name, got)
		}
	}
	last := s.Hosts[len(s.Hosts)-1]
	for name, names := range map[string][]string{"renewal": {last.Name}, "theft": {"kubernetes.default.svc"}} {
		s.on(t, last.Name, "echo '"+request(t, name, last.Name, names, net.ParseIP(last.Address))+"' | kubectl --kubeconfig /etc/kubernetes/kubelet.conf --cache-dir /run/asking create -f -; rm -r /run/asking")
	}
	said(t, s.install(t, config), 0, "1 step ran")
	said(t, s.install(t, config), 0, "0 steps ran")
	for name, want := range map[string]string{"renewal": "Approved", "theft": ""} {
		if got := s.kubectl(t, "get", "csr", name, "-o", "jsonpath={.status.conditions[*].type}"); got != want {
			t.Errorf("what %s asked for is %q and not %q", name, got, want)
		}
	}
	s.kubectl(t, "delete", "csr", "renewal", "theft")
}

// request is what a node asks for, to serve with.
func request(t testing.TB, name, node string, names []string, ip net.IP) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: "system:node:" + node, Organization: []string{"system:nodes"}}, DNSNames: names, IPAddresses: []net.IP{ip},
	}, key)
	if err != nil {
		t.Fatal(err)
	}
	text := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))
	return strings.TrimSpace(fmt.Sprintf(`{"apiVersion":"certificates.k8s.io/v1","kind":"CertificateSigningRequest","metadata":{"name":%q},
		"spec":{"signerName":"kubernetes.io/kubelet-serving","usages":["digital signature","server auth"],"request":%q}}`, name, text))
}
