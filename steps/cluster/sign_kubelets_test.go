package cluster_test

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net"
	"net/url"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/cluster"
	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/steptest"
)

// asked is where the request of node1 lies in the store.
const asked = "/var/lib/etcd/member/CertificateSigningRequest.certificates.k8s.io/-/csr-node1"

// own is what the kubelet of node1 may ask for.
func own() *x509.CertificateRequest {
	return &x509.CertificateRequest{
		Subject:  pkix.Name{CommonName: "system:node:node1", Organization: []string{"system:nodes"}},
		DNSNames: []string{"node1"}, IPAddresses: []net.IP{net.ParseIP("192.0.2.11")},
	}
}

// TestSignKubeletsLooksAtNames: what a node asks for beyond itself is not approved, and said.
func TestSignKubeletsLooksAtNames(t *testing.T) {
	small := with(t, "")
	spec := func(o steptest.Object) steptest.Object {
		m, ok := o["spec"].(steptest.Object)
		if !ok {
			t.Fatal("no spec")
		}
		return m
	}
	for name, c := range map[string]struct {
		names func(*x509.CertificateRequest)
		more  func(steptest.Object)
		says  string
	}{
		"its own":                    {},
		"its name in the cluster":    {names: func(r *x509.CertificateRequest) { r.DNSNames = append(r.DNSNames, "node1.cluster.local") }},
		"a key that enciphers":       {more: func(o steptest.Object) { spec(o)["usages"] = []any{"server auth", "key encipherment"} }},
		"another's name":             {names: func(r *x509.CertificateRequest) { r.DNSNames[0] = "kubernetes.default.svc" }, says: "kubernetes.default.svc is not a name of node1"},
		"another's address":          {names: func(r *x509.CertificateRequest) { r.IPAddresses[0] = net.ParseIP("192.0.2.1") }, says: "192.0.2.1 is not an address of node1"},
		"a path":                     {names: func(r *x509.CertificateRequest) { r.URIs = []*url.URL{{Scheme: "spiffe", Host: "x"}} }, says: "e-mail addresses or URIs"},
		"an address of mail":         {names: func(r *x509.CertificateRequest) { r.EmailAddresses = []string{"a@b"} }, says: "e-mail addresses or URIs"},
		"no names":                   {names: func(r *x509.CertificateRequest) { r.DNSNames, r.IPAddresses = nil, nil }, says: "neither DNS names nor IP addresses"},
		"for another node":           {names: func(r *x509.CertificateRequest) { r.Subject.CommonName = "system:node:node2" }, says: "not the node itself"},
		"for masters":                {names: func(r *x509.CertificateRequest) { r.Subject.Organization = []string{"system:nodes", "system:masters"} }, says: "not the node itself"},
		"for a client":               {more: func(o steptest.Object) { spec(o)["usages"] = []any{"client auth", "server auth"} }, says: "client auth"},
		"for nothing":                {more: func(o steptest.Object) { spec(o)["usages"] = []any{"digital signature"} }, says: "does not request the usage \"server auth\""},
		"not of the group":           {more: func(o steptest.Object) { spec(o)["groups"] = []any{"system:authenticated"} }, says: "not a node of the config"},
		"somebody else's":            {more: func(o steptest.Object) { spec(o)["username"] = "system:node:node9" }, says: "cannot reach the kubelet of node1"},
		"no request":                 {more: func(o steptest.Object) { spec(o)["request"] = "" }, says: "contains no PEM certificate request"},
		"a request of another's key": {more: func(o steptest.Object) { spoil(t, spec(o)) }, says: "not signed with the key"},
		"of another signer":          {more: func(o steptest.Object) { spec(o)["signerName"] = "kubernetes.io/legacy-unknown" }, says: "cannot reach the kubelet of node1"},
		"answered already, with a no": {more: func(o steptest.Object) {
			o["status"] = steptest.Object{"conditions": []any{steptest.Object{"type": "Denied"}}}
		}, says: "cannot reach the kubelet of node1"},
		"no request, and words behind": {more: func(o steptest.Object) { spec(o)["request"] = base64.StdEncoding.EncodeToString([]byte("x")) }, says: "contains no PEM certificate request"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := own()
				if c.names != nil {
					c.names(r)
				}
				o := steptest.Request("csr-node1", "system:node:node1", r)
				if c.more != nil {
					c.more(o)
				}
				kase := standing(small)
				s := kase.Sim(t)
				text, err := json.Marshal(o)
				if err != nil {
					t.Fatal(err)
				}
				s.AddFile(asked, string(text), 0o600)
				step := cluster.SignKubelets(small, small.Spec.Hosts)
				h := kase.NewHost(t, s, step)
				if v, err := step.Precheck(t.Context(), h); v == steps.Done || err != nil {
					t.Errorf("before: %v, %v", v, err)
				}
				err = step.Run(t.Context(), h)
				_, signed := s.File("/var/lib/kubelet/pki/kubelet-server-current.pem")
				if c.says == "" {
					if v, perr := step.Precheck(t.Context(), h); err != nil || !signed || v != steps.Done || perr != nil {
						t.Errorf("%v, signed %t, then %v, %v", err, signed, v, perr)
					}
					return
				}
				if err == nil || !strings.Contains(err.Error(), c.says) || signed || len(steps.Advice(err)) == 0 {
					t.Errorf("%v, signed %t, want %s", err, signed, c.says)
				}
			})
		})
	}
}

// spoil changes the signature of a request.
func spoil(t *testing.T, spec steptest.Object) {
	t.Helper()
	word, _ := spec["request"].(string)
	text, err := base64.StdEncoding.DecodeString(word)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	block.Bytes[len(block.Bytes)-1] ^= 1
	spec["request"] = base64.StdEncoding.EncodeToString(pem.EncodeToMemory(block))
}

// TestSignKubeletsKnowsAddresses, however the config writes them.
func TestSignKubeletsKnowsAddresses(t *testing.T) {
	six := steptest.Cluster(t, strings.NewReplacer("192.0.2.11}", "192.0.2.11, internalAddress: [\"2001:DB8:0::0:11\"]}").Replace(steptest.Small))
	kase := standing(six)
	s := kase.Sim(t)
	r := own()
	r.IPAddresses = append(r.IPAddresses, net.ParseIP("2001:db8::11"))
	text, err := json.Marshal(steptest.Request("csr-node1", "system:node:node1", r))
	if err != nil {
		t.Fatal(err)
	}
	s.AddFile(asked, string(text), 0o600)
	step := cluster.SignKubelets(six, six.Spec.Hosts)
	if err := step.Run(t.Context(), kase.NewHost(t, s, step)); err != nil {
		t.Error(err)
	}
}

// TestSignKubeletsApprovesRenewals, of a kubelet that answers still, and lets one lie
// that it must not approve.
func TestSignKubeletsApprovesRenewals(t *testing.T) {
	small := with(t, "")
	kase := standing(small)
	s := kase.Sim(t)
	step := cluster.SignKubelets(small, small.Spec.Hosts)
	h := kase.NewHost(t, s, step)
	if err := step.Run(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	put := func(r *x509.CertificateRequest) {
		text, err := json.Marshal(steptest.Request("csr-node1", "system:node:node1", r))
		if err != nil {
			t.Fatal(err)
		}
		s.AddFile(asked, string(text), 0o600)
	}
	put(own())
	if v, err := step.Precheck(t.Context(), h); v == steps.Done || err != nil {
		t.Fatalf("a renewal waits: %v, %v", v, err)
	}
	if err := step.Run(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	if _, there := s.File(asked); there {
		t.Error("the renewal still waits")
	}
	bad := own()
	bad.DNSNames = []string{"etcd"}
	put(bad)
	if v, err := step.Precheck(t.Context(), h); v != steps.Done || err != nil {
		t.Errorf("what must not be approved: %v, %v", v, err)
	}
}

// TestSignKubeletsApprovesWhatItSaw: a request that takes another's name meanwhile is not approved.
func TestSignKubeletsApprovesWhatItSaw(t *testing.T) {
	small := with(t, "")
	kase := standing(small)
	s := kase.Sim(t)
	var seen []string
	s.Handle(func(c connector.Cmd) bool { return slices.Contains(c.Argv, "replace") }, func(c connector.Cmd, _ []byte) (connector.Result, bool) {
		if i := slices.Index(c.Argv, "replace"); len(seen) == 0 {
			seen = append(seen, strings.Join(c.Argv[i:], " "))
			bad := own()
			bad.DNSNames = []string{"etcd"}
			o := steptest.Request("csr-node1", "system:node:node1", bad)
			if m, ok := o["metadata"].(steptest.Object); ok {
				m["uid"] = "of another one"
			}
			text, err := json.Marshal(o)
			if err != nil {
				t.Error(err)
			}
			s.AddFile(asked, string(text), 0o600)
		}
		return connector.Result{}, false
	})
	step := cluster.SignKubelets(small, small.Spec.Hosts)
	err := step.Run(t.Context(), kase.NewHost(t, s, step))
	if _, signed := s.File("/var/lib/kubelet/pki/kubelet-server-current.pem"); err == nil || !strings.Contains(err.Error(), "etcd is not a name of node1") || signed || len(seen) == 0 {
		t.Errorf("%v, signed %t, %q", err, signed, seen)
	}
}

// TestSignKubeletsOfAThousandNodes: their requests are more than kubexm keeps of what a
// program prints, and one node makes hundreds.
func TestSignKubeletsOfAThousandNodes(t *testing.T) {
	var hosts, workers []string
	for i := 2; i <= 1000; i++ {
		workers = append(workers, fmt.Sprintf("node%d", i))
		hosts = append(hosts, fmt.Sprintf("    - {name: node%d, address: 198.18.%d.%d}", i, i>>8, i&0xff))
	}
	c := steptest.Cluster(t, strings.NewReplacer("192.0.2.11}", "192.0.2.11}\n"+strings.Join(hosts, "\n"), "worker: [node1]", "worker: ["+strings.Join(workers, ", ")+"]", "{plugin: flannel}", "{plugin: flannel, kubePodsCIDR: 10.64.0.0/12}").Replace(steptest.Small))
	kase := standing(c)
	s := kase.Sim(t)
	put := func(name, node, address string) {
		r := &x509.CertificateRequest{
			Subject:  pkix.Name{CommonName: "system:node:" + node, Organization: []string{"system:nodes"}},
			DNSNames: []string{node}, IPAddresses: []net.IP{net.ParseIP(address)},
		}
		o := steptest.Request(name, "system:node:"+node, r)
		if m, ok := o["metadata"].(steptest.Object); ok {
			m["annotations"] = steptest.Object{"filler": strings.Repeat("x", 1024)} // as long as real ones
		}
		text, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		s.AddFile(path.Join(path.Dir(asked), name), string(text), 0o600)
	}
	for _, h := range c.Spec.Hosts {
		put("csr-"+h.Name, h.Name, h.Address)
	}
	for i := range 300 {
		put(fmt.Sprintf("csr-flood-%d", i), "node7", "192.0.2.66")
	}
	step := cluster.SignKubelets(c, c.Spec.Hosts)
	h := kase.NewHost(t, s, step)
	if v, err := step.Precheck(t.Context(), h); v == steps.Done || err != nil {
		t.Fatalf("before: %v, %v", v, err)
	}
	if err := step.Run(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, p := range s.Below(path.Dir(asked)) {
		if !strings.Contains(p, "flood") {
			left = append(left, p)
		}
	}
	if len(left) > 1 { // of node7, whose newest requests may be others
		t.Errorf("%d requests wait still, such as %s", len(left), left[0])
	}
}
