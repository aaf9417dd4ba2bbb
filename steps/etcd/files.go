package etcd

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
)

// clientConfig reads the files that the config names for a store that stands
// already. It is nil where there are none.
func clientConfig(e manifest.ExternalEtcd) (*tls.Config, error) {
	if e.CAFile == "" && e.CertFile == "" {
		return nil, nil
	}
	conf := &tls.Config{MinVersion: tls.VersionTLS12}
	if e.CAFile != "" {
		text, err := os.ReadFile(e.CAFile)
		if err != nil {
			return nil, err
		}
		conf.RootCAs = x509.NewCertPool()
		if !conf.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("%s: no certificate in PEM", e.CAFile)
		}
	}
	if e.CertFile != "" {
		pair, err := tls.LoadX509KeyPair(e.CertFile, e.KeyFile)
		if err != nil {
			return nil, err
		}
		conf.Certificates = []tls.Certificate{pair}
	}
	return conf, nil
}

// CheckFiles looks at the files of a store that stands already, before any host
// is asked: they can be read, the key is the certificate's, and the certificate
// is good for a client now. Others find nothing.
func CheckFiles(c *manifest.Cluster, now time.Time) manifest.Problems {
	if part.StoreOf(c).Kind != part.External {
		return nil
	}
	var ps manifest.Problems
	bad := func(field string, err error, advice string) {
		if err != nil {
			ps = append(ps, manifest.Problem{Path: "spec.etcd.external." + field, Message: err.Error(), Advice: advice})
		}
	}
	e := c.Spec.Etcd.External
	if e.CAFile != "" {
		_, err := clientConfig(manifest.ExternalEtcd{CAFile: e.CAFile})
		bad("caFile", err, "name a file with the CA's certificate; paths start at the config's folder")
	}
	if e.CertFile != "" {
		conf, err := clientConfig(manifest.ExternalEtcd{CertFile: e.CertFile, KeyFile: e.KeyFile})
		bad("certFile", err, "name a certificate in PEM, and in keyFile its key; paths start at the config's folder")
		if err == nil {
			bad("certFile", goodClient(conf.Certificates[0].Leaf, now), "have the etcd's CA issue another")
		}
	}
	return ps
}

// goodClient tells why a certificate does not do for a client.
func goodClient(c *x509.Certificate, now time.Time) error {
	switch {
	case now.After(c.NotAfter):
		return fmt.Errorf("the certificate of %s expired on %s", c.Subject.CommonName, c.NotAfter.UTC().Format(time.DateOnly))
	case now.Before(c.NotBefore):
		return fmt.Errorf("the certificate of %s is not valid before %s", c.Subject.CommonName, c.NotBefore.UTC().Format(time.DateTime))
	case len(c.ExtKeyUsage) == 0:
		return nil
	}
	for _, u := range c.ExtKeyUsage {
		if u == x509.ExtKeyUsageClientAuth || u == x509.ExtKeyUsageAny {
			return nil
		}
	}
	return errors.New("the certificate is for servers alone")
}
