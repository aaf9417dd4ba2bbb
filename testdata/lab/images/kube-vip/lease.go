package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"go.yaml.in/yaml/v3"
)

// client sends requests to an API server, with the certificate of a kubeconfig.
type client struct {
	base string
	http *http.Client
}

func newClient(kubeconfig []byte, base string) (*client, error) {
	var conf struct {
		Clusters []struct {
			Cluster struct {
				CA string `yaml:"certificate-authority-data"`
			} `yaml:"cluster"`
		} `yaml:"clusters"`
		Users []struct {
			User struct {
				Certificate string `yaml:"client-certificate-data"`
				Key         string `yaml:"client-key-data"`
			} `yaml:"user"`
		} `yaml:"users"`
	}
	if err := yaml.Unmarshal(kubeconfig, &conf); err != nil {
		return nil, fmt.Errorf("failed to build config from file: %w", err)
	}
	if len(conf.Clusters) != 1 || len(conf.Users) != 1 {
		return nil, errors.New("failed to build config from file: it has not one cluster and one user")
	}
	var decoded [3][]byte
	for i, text := range []string{conf.Clusters[0].Cluster.CA, conf.Users[0].User.Certificate, conf.Users[0].User.Key} {
		var err error
		if decoded[i], err = base64.StdEncoding.DecodeString(text); err != nil {
			return nil, fmt.Errorf("failed to build config from file: %w", err)
		}
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(decoded[0]) {
		return nil, errors.New("failed to build config from file: no CA")
	}
	pair, err := tls.X509KeyPair(decoded[1], decoded[2])
	if err != nil {
		return nil, fmt.Errorf("failed to build config from file: %w", err)
	}
	return &client{base: base, http: &http.Client{
		Timeout: 10 * time.Second, // defaultTimeout of pkg/k8s
		Transport: &http.Transport{
			TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12},
		},
	}}, nil
}

// object is a Lease as JSON. Fields that are not here get lost in an update, as no server minds.
type object struct {
	APIVersion string         `json:"apiVersion"`
	Kind       string         `json:"kind"`
	Metadata   map[string]any `json:"metadata"`
	Spec       leaseSpec      `json:"spec"`
}

type leaseSpec struct {
	Holder      string `json:"holderIdentity,omitempty"`
	Seconds     int    `json:"leaseDurationSeconds,omitempty"`
	Acquired    string `json:"acquireTime,omitempty"`
	Renewed     string `json:"renewTime,omitempty"`
	Transitions int    `json:"leaseTransitions"`
}

// lease is a Lease of a cluster.
type lease struct {
	*client
	folder, name string
}

func (c *client) lease(namespace, name string) lease {
	return lease{c, c.base + "/apis/coordination.k8s.io/v1/namespaces/" + namespace + "/leases", name}
}

// statusError is an answer of the API server that is no success.
type statusError struct {
	code    int
	message string
}

func (e *statusError) Error() string { return fmt.Sprintf("%s (%d)", e.message, e.code) }

func isCode(err error, code int) bool {
	var e *statusError
	return errors.As(err, &e) && e.code == code
}

func (l lease) get(ctx context.Context) (object, error) {
	return l.send(ctx, http.MethodGet, l.folder+"/"+l.name, nil)
}

func (l lease) create(ctx context.Context, spec leaseSpec) (object, error) {
	return l.send(ctx, http.MethodPost, l.folder, &object{
		APIVersion: "coordination.k8s.io/v1", Kind: "Lease", Metadata: map[string]any{"name": l.name}, Spec: spec,
	})
}

// update replaces the Lease, unless somebody else has since it was read: metadata has its
// resource version.
func (l lease) update(ctx context.Context, o object) (object, error) {
	return l.send(ctx, http.MethodPut, l.folder+"/"+l.name, &o)
}

func (l lease) send(ctx context.Context, method, url string, in *object) (out object, err error) {
	var body io.Reader
	if in != nil {
		text, err := json.Marshal(in)
		if err != nil {
			return out, err
		}
		body = bytes.NewReader(text)
	}
	r, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		return out, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "kube-vip")
	answer, err := l.http.Do(r)
	if err != nil {
		return out, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
	if err != nil {
		return out, err
	}
	if answer.StatusCode/100 != 2 {
		var status struct {
			Message string `json:"message"`
		}
		if json.Unmarshal(text, &status) != nil || status.Message == "" {
			status.Message = answer.Status
		}
		return out, &statusError{answer.StatusCode, status.Message}
	}
	return out, json.Unmarshal(text, &out)
}
