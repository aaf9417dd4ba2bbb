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

// clientConfig reads the TLS files that the config specifies for an existing etcd. It
// returns nil if there are none.
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

// CheckFiles checks the TLS files of an existing etcd on the workdir host: they are
// readable, key and certificate match, and the certificate is valid for a client at the
// time now. For other types of etcd it returns nil.
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
		bad("caFile", err, "specify a file with the CA certificate; paths are relative to the config's folder")
	}
	if e.CertFile != "" {
		conf, err := clientConfig(manifest.ExternalEtcd{CertFile: e.CertFile, KeyFile: e.KeyFile})
		bad("certFile", err, "specify a certificate in PEM, and its key in keyFile; paths are relative to the config's folder")
		if err == nil {
			bad("certFile", goodClient(conf.Certificates[0].Leaf, now), "issue another certificate with etcd's CA")
		}
	}
	return ps
}

// goodClient returns why a certificate is not valid for a client; nil if it is.
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
	return errors.New("the certificate is valid for servers only")
}
