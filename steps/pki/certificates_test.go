package pki_test

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/mensylisir/kubexm/steps/pki"
)

func pairFor(t testing.TB, name string) (cert, key string) {
	t.Helper()
	p, err := pki.NewAuthority(name, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	c, k, err := p.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return string(c), string(k)
}

func kubeconfigWith(cert string) string {
	return "apiVersion: v1\nkind: Config\nusers:\n- name: admin\n  user:\n    client-certificate-data: " + base64.StdEncoding.EncodeToString([]byte(cert)) + "\n    client-key-data: AAAA\n"
}

func TestCertificates(t *testing.T) {
	a, key := pairFor(t, "a")
	b, _ := pairFor(t, "b")
	for name, x := range map[string]struct{ text, want, err string }{
		"one":                                  {a, "a", ""},
		"several, and a key":                   {key + a + b, "a b", ""},
		"a kubeconfig":                         {kubeconfigWith(a), "a", ""},
		"a kubeconfig that names a file":       {"kind: Config\nusers: [{name: x, user: {client-certificate: /x.pem}}]\n", "", "no certificate"},
		"a kubeconfig that is damaged":         {"kind: Config\nusers: [{name: x, user: {client-certificate-data: '%'}}]\n", "", "client-certificate-data: illegal base64"},
		"a key alone":                          {key, "", "no certificate"},
		"nothing":                              {"", "", "no certificate"},
		"something else":                       {"\t: [", "", "neither PEM nor a kubeconfig"},
		"a certificate that is cut":            {"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "", "certificate: "},
		"a kubeconfig with a certificate's CA": {kubeconfigWith(a + b), "a b", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := pki.Certificates([]byte(x.text))
			var names []string
			for _, c := range got {
				names = append(names, c.Subject.CommonName)
			}
			if strings.Join(names, " ") != x.want || (err == nil) != (x.err == "") || err != nil && !strings.Contains(err.Error(), x.err) {
				t.Errorf("%q, %v", names, err)
			}
		})
	}
}

func FuzzCertificates(f *testing.F) {
	a, key := pairFor(f, "a")
	for _, s := range []string{a, key + a, kubeconfigWith(a), "", "kind: Config\nusers: []\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if got, err := pki.Certificates(text); err == nil && len(got) == 0 {
			t.Error("no certificate, and no error")
		}
	})
}
