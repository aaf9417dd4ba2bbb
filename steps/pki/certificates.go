package pki

import (
	"bytes"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"

	"go.yaml.in/yaml/v3"
)

// Certificates returns the certificates in a PEM file, or the client certificates in a kubeconfig
// that contains them. Other PEM blocks, such as keys, are skipped. It is an error if there is no
// certificate.
func Certificates(text []byte) ([]*x509.Certificate, error) {
	if !bytes.Contains(text, []byte("-----BEGIN ")) {
		var err error
		if text, err = inKubeconfig(text); err != nil {
			return nil, err
		}
	}
	var out []*x509.Certificate
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("certificate: %w", err)
		}
		out = append(out, cert)
	}
	if len(out) == 0 {
		return nil, errors.New("no certificate")
	}
	return out, nil
}

// inKubeconfig returns the client certificates in a kubeconfig, as PEM.
func inKubeconfig(text []byte) ([]byte, error) {
	var conf struct {
		Users []struct {
			User struct {
				Data string `yaml:"client-certificate-data"`
			} `yaml:"user"`
		} `yaml:"users"`
	}
	if err := yaml.Unmarshal(text, &conf); err != nil {
		return nil, errors.New("neither PEM nor a kubeconfig")
	}
	var out []byte
	for _, u := range conf.Users {
		cert, err := base64.StdEncoding.DecodeString(u.User.Data)
		if err != nil {
			return nil, fmt.Errorf("client-certificate-data: %w", err)
		}
		out = append(append(out, cert...), '\n')
	}
	return out, nil
}
