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

// Certs are the files of a folder like those in docker's certs.d: the CAs that a
// registry's certificate is checked with, and a certificate to show, all as PEM.
type Certs struct {
	CA        []byte // empty: the CAs of the machine
	Cert, Key []byte // empty: none is shown
}

// ReadCerts reads such a folder: *.crt are CAs, and a *.cert has its key in the
// *.key of the same name. The zero Certs are those of no folder.
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
				return c, fmt.Errorf("%s: holds more than one *.cert", dir)
			}
			if c.Cert, err = os.ReadFile(at); err != nil {
				return c, err
			}
			if c.Key, err = os.ReadFile(name + ".key"); errors.Is(err, fs.ErrNotExist) {
				return c, fmt.Errorf("%s: has no key beside it: %w", at, err)
			} else if err != nil {
				return c, err
			}
		}
	}
	if c.CA == nil && c.Cert == nil {
		return c, fmt.Errorf("%s: holds neither *.crt nor *.cert", dir)
	}
	return c, nil
}

// TLS gives what a client speaks with. insecure checks no certificate.
func (c Certs) TLS(insecure bool) (*tls.Config, error) {
	conf := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: insecure} //nolint:gosec // where the config spells it
	if c.CA != nil {
		conf.RootCAs = x509.NewCertPool()
		if !conf.RootCAs.AppendCertsFromPEM(c.CA) {
			return nil, errors.New("the *.crt files hold no certificate in PEM")
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
