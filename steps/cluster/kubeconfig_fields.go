package cluster

import (
	"bytes"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/mensylisir/kubexm/steps/controlplane"
	"github.com/mensylisir/kubexm/steps/kubectl"
)

// KubeconfigError is the error for a kubeconfig of a host that kubexm refuses: kubectl runs
// programs and reads files that a kubeconfig specifies.
type KubeconfigError struct {
	Field  string // such as users[0].user.exec; "" is the entire document
	Why    string
	advice string
}

func (e *KubeconfigError) Error() string {
	if e.Field == "" {
		return kubectl.AdminConf + ": " + e.Why
	}
	return kubectl.AdminConf + ": " + e.Field + ": " + e.Why
}

// Advice returns what the operator can do.
func (e *KubeconfigError) Advice() string {
	if e.advice != "" {
		return e.advice
	}
	return "kubexm accepts only the fields that kubeadm writes into this file; find out who changed it, then recreate it on the master with kubeadm kubeconfig user"
}

// conf is a kubeconfig with only the fields that kubeadm writes.
type conf struct {
	APIVersion string         `yaml:"apiVersion"`
	Kind       string         `yaml:"kind"`
	Clusters   []namedCluster `yaml:"clusters"`
	Contexts   []namedContext `yaml:"contexts"`
	Current    string         `yaml:"current-context"`
	Users      []namedUser    `yaml:"users"`
}

type namedCluster struct {
	Name    string `yaml:"name"`
	Cluster struct {
		Authority  string `yaml:"certificate-authority-data"`
		Server     string `yaml:"server"`
		ServerName string `yaml:"tls-server-name,omitempty"`
	} `yaml:"cluster"`
}

type namedContext struct {
	Name    string `yaml:"name"`
	Context struct {
		Cluster string `yaml:"cluster"`
		User    string `yaml:"user"`
	} `yaml:"context"`
}

type namedUser struct {
	Name string `yaml:"name"`
	User struct {
		Certificate string `yaml:"client-certificate-data"`
		Key         string `yaml:"client-key-data"`
	} `yaml:"user"`
}

// operatorConf builds the kubeconfig for the workdir host from a master's. address
// replaces the host of the server's URL, unless it is ""; the certificate is verified
// for the name in the master's file. A CA other than ca, the cluster's, is refused.
func operatorConf(text, ca []byte, address string) ([]byte, error) {
	c, err := readConf(text)
	if err != nil {
		return nil, err
	}
	cluster := &c.Clusters[0].Cluster
	if !within(cluster.Authority, ca) {
		return nil, &KubeconfigError{Field: "clusters[0].cluster.certificate-authority-data", Why: "not the CA in " + controlplane.AuthorityFile}
	}
	if address != "" {
		u, err := url.Parse(cluster.Server)
		if err != nil {
			return nil, &KubeconfigError{Field: "clusters[0].cluster.server", Why: "not an address"}
		}
		if cluster.ServerName == "" {
			cluster.ServerName = u.Hostname()
		}
		cluster.Server = "https://" + net.JoinHostPort(address, u.Port())
	}
	return yaml.Marshal(c)
}

// sameAuthority compares the CA of a kubeconfig with the CA in file, which an earlier run
// wrote. A missing or damaged file is no error.
func sameAuthority(file string, kubeconfig []byte) error {
	before, err := os.ReadFile(file)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	old, err := readConf(before)
	if err != nil {
		return nil //nolint:nilerr // a damaged file is rewritten
	}
	now, err := readConf(kubeconfig)
	if err != nil {
		return err
	}
	ca, err := base64.StdEncoding.DecodeString(old.Clusters[0].Cluster.Authority)
	if err != nil || within(now.Clusters[0].Cluster.Authority, ca) {
		return err
	}
	return &KubeconfigError{Field: "clusters[0].cluster.certificate-authority-data", Why: "not the CA that this cluster had before, which is in " + file,
		advice: "find out whether this host still is the master that it was; if the cluster was recreated without kubexm, move " + file + " away and run the command again"}
}

// KubeconfigMatches reports whether the operator's kubeconfig in the cluster's folder dir belongs to
// the cluster with the CA certificate ca, in PEM. It is true for a missing or damaged
// kubeconfig.
func KubeconfigMatches(dir string, ca []byte) (bool, error) {
	text, err := os.ReadFile(KubeconfigPath(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	c, err := readConf(text)
	return err != nil || within(c.Clusters[0].Cluster.Authority, ca), nil //nolint:nilerr // a damaged file is rewritten
}

// within reports whether all certificates in data, PEM in base64, are among those in of.
func within(data string, of []byte) bool {
	text, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		return false
	}
	known, want := blocks(of), blocks(text)
	for _, w := range want {
		if !slices.ContainsFunc(known, func(k []byte) bool { return bytes.Equal(k, w) }) {
			return false
		}
	}
	return len(want) > 0
}

func blocks(text []byte) [][]byte {
	var out [][]byte
	for b, rest := pem.Decode(text); b != nil; b, rest = pem.Decode(rest) {
		out = append(out, b.Bytes)
	}
	return out
}

// readConf parses a kubeconfig with exactly one cluster, one user and one context, and
// only the fields of conf.
func readConf(text []byte) (*conf, error) {
	var doc any
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, &KubeconfigError{Why: "not YAML"}
	}
	r := &confReader{}
	top := r.object("", doc, "apiVersion", "kind", "clusters", "contexts", "current-context", "users", "preferences")
	if p := top["preferences"]; p != nil {
		r.object("preferences", p)
	}
	cluster, user, of := r.cluster(top["clusters"]), r.user(top["users"]), namedContext{}
	name, in, at := r.one("contexts", top["contexts"], "context", "cluster", "user")
	of.Name = name
	of.Context.Cluster = r.same(at+".cluster", in["cluster"], cluster.Name)
	of.Context.User = r.same(at+".user", in["user"], user.Name)
	c := &conf{
		APIVersion: r.same("apiVersion", top["apiVersion"], "v1"), Kind: r.same("kind", top["kind"], "Config"),
		Clusters: []namedCluster{cluster}, Users: []namedUser{user}, Contexts: []namedContext{of},
		Current: r.same("current-context", top["current-context"], name),
	}
	return c, r.err
}

// confReader reads values of a document and records the first error.
type confReader struct{ err error }

func (r *confReader) refuse(field, format string, args ...any) {
	if r.err == nil {
		r.err = &KubeconfigError{Field: field, Why: fmt.Sprintf(format, args...)}
	}
}

// object returns v as a map with only the allowed keys.
func (r *confReader) object(field string, v any, allowed ...string) map[string]any {
	m, ok := v.(map[string]any)
	if !ok {
		r.refuse(field, "not an object")
		return nil
	}
	for _, key := range slices.Sorted(maps.Keys(m)) {
		if !slices.Contains(allowed, key) {
			if !plain.MatchString(key) {
				key = fmt.Sprintf("%q", key)
			}
			r.refuse(strings.TrimPrefix(field+"."+key, "."), "not a field that kubexm accepts from a host")
		}
	}
	return m
}

// one returns the name of a list's only entry, its content, and the content's path.
func (r *confReader) one(field string, v any, kind string, allowed ...string) (name string, in map[string]any, at string) {
	list, _ := v.([]any)
	if len(list) != 1 {
		r.refuse(field, "%d entries instead of one", len(list))
		return "", nil, ""
	}
	entry := r.object(field+"[0]", list[0], "name", kind)
	at = field + "[0]." + kind
	return r.text(field+"[0].name", entry["name"]), r.object(at, entry[kind], allowed...), at
}

func (r *confReader) cluster(v any) (c namedCluster) {
	name, in, at := r.one("clusters", v, "cluster", "certificate-authority-data", "server", "tls-server-name")
	c.Name = name
	c.Cluster.Authority = r.pem(at+".certificate-authority-data", in["certificate-authority-data"], "CERTIFICATE")
	c.Cluster.Server = r.server(at+".server", in["server"])
	if name, ok := in["tls-server-name"]; ok {
		c.Cluster.ServerName = r.text(at+".tls-server-name", name)
	}
	return c
}

func (r *confReader) user(v any) (u namedUser) {
	name, in, at := r.one("users", v, "user", "client-certificate-data", "client-key-data")
	u.Name = name
	u.User.Certificate = r.pem(at+".client-certificate-data", in["client-certificate-data"], "CERTIFICATE")
	u.User.Key = r.pem(at+".client-key-data", in["client-key-data"], "PRIVATE KEY", "EC PRIVATE KEY", "RSA PRIVATE KEY")
	return u
}

// plain matches the names and host names of a kubeconfig.
var plain = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9@._:/-]{0,252}$`)

func (r *confReader) text(field string, v any) string {
	s, ok := v.(string)
	if !ok || !plain.MatchString(s) {
		r.refuse(field, "not a name")
	}
	return s
}

func (r *confReader) same(field string, v any, want string) string {
	if s, ok := v.(string); !ok || s != want {
		r.refuse(field, "not %q", want)
	}
	return want
}

// server accepts https://HOST:PORT.
func (r *confReader) server(field string, v any) string {
	s, _ := v.(string)
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "https" || u.Hostname() == "" || u.Port() == "" || s != "https://"+u.Host || !plain.MatchString(strings.Trim(u.Host, "[")) {
		r.refuse(field, "not https://HOST:PORT")
	}
	return s
}

// pem accepts base64 of PEM blocks of the given types, and returns it encoded again.
func (r *confReader) pem(field string, v any, types ...string) string {
	s, _ := v.(string)
	text, err := base64.StdEncoding.DecodeString(s)
	var out []byte
	b, rest := pem.Decode(text)
	for ; err == nil && b != nil && slices.Contains(types, b.Type); b, rest = pem.Decode(rest) {
		out = append(out, pem.EncodeToMemory(&pem.Block{Type: b.Type, Bytes: b.Bytes})...)
	}
	if b != nil || len(out) == 0 {
		r.refuse(field, "not PEM in base64 of the type %s", types[0])
	}
	return base64.StdEncoding.EncodeToString(out)
}
