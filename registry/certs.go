package registry

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Certs are the certificates for one registry, as in a folder of docker's certs.d: CA
// certificates that verify the registry, and a client certificate with its key, all in PEM.
type Certs struct {
	CA        []byte // empty: the CA certificates of the system
	Cert, Key []byte // empty: no client certificate
}

// ReadCerts reads such a folder: *.crt files are CA certificates, a *.cert file is the client
// certificate, and the *.key file of the same name is its key. It returns the zero Certs if dir
// is "".
func ReadCerts(dir string) (Certs, error) {
	var c Certs
	if dir == "" {
		return c, nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return c, err
	}
	for _, e := range entries {
		at := filepath.Join(dir, e.Name())
		switch name, ext := strings.TrimSuffix(at, filepath.Ext(at)), filepath.Ext(at); ext {
		case ".crt":
			text, err := os.ReadFile(at)
			if err != nil {
				return c, err
			}
			c.CA = append(append(c.CA, bytes.TrimSpace(text)...), '\n')
		case ".cert":
			if c.Cert != nil {
				return c, fmt.Errorf("%s: contains more than one *.cert file", dir)
			}
			if c.Cert, err = os.ReadFile(at); err != nil {
				return c, err
			}
			if c.Key, err = os.ReadFile(name + ".key"); errors.Is(err, fs.ErrNotExist) {
				return c, fmt.Errorf("%s: no *.key file of the same name: %w", at, err)
			} else if err != nil {
				return c, err
			}
		}
	}
	if c.CA == nil && c.Cert == nil {
		return c, fmt.Errorf("%s: contains neither *.crt nor *.cert files", dir)
	}
	return c, nil
}

// TLS returns the TLS configuration of a client. insecure skips certificate verification.
func (c Certs) TLS(insecure bool) (*tls.Config, error) {
	conf := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: insecure} //nolint:gosec // only if the config sets skipTLSVerify
	if c.CA != nil {
		conf.RootCAs = x509.NewCertPool()
		if !conf.RootCAs.AppendCertsFromPEM(c.CA) {
			return nil, errors.New("the *.crt files contain no PEM certificate")
		}
	}
	if c.Cert != nil {
		pair, err := tls.X509KeyPair(c.Cert, c.Key)
		if err != nil {
			return nil, fmt.Errorf("the *.cert file and its key: %w", err)
		}
		conf.Certificates = []tls.Certificate{pair}
	}
	return conf, nil
}
