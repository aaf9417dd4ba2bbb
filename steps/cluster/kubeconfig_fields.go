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

// ErrKubeconfig is why a kubeconfig that a host holds is refused: kubectl runs
// programs and reads files that a kubeconfig names.
type ErrKubeconfig struct {
	Field  string // such as users[0].user.exec; "" is the whole document
	Why    string
	advice string
}

func (e *ErrKubeconfig) Error() string {
	if e.Field == "" {
		return kubectl.AdminConf + ": " + e.Why
	}
	return kubectl.AdminConf + ": " + e.Field + ": " + e.Why
}

// Advice says what the operator can do.
func (e *ErrKubeconfig) Advice() string {
	if e.advice != "" {
		return e.advice
	}
	return "kubexm takes only what kubeadm writes into this file; find out who changed it, then write it anew on the master: kubeadm kubeconfig user --help"
}

// conf is a kubeconfig with the fields that kubeadm writes, and no other.
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

// operatorConf builds the kubeconfig for the workdir host from a master's. The
// server is reached at address ("" is under its own name) and verified under the
// name that the master's file has. ca is the cluster's CA: another is refused.
func operatorConf(text, ca []byte, address string) ([]byte, error) {
	c, err := readConf(text)
	if err != nil {
		return nil, err
	}
	cluster := &c.Clusters[0].Cluster
	if !within(cluster.Authority, ca) {
		return nil, &ErrKubeconfig{Field: "clusters[0].cluster.certificate-authority-data", Why: "not the CA in " + controlplane.AuthorityFile}
	}
	if address != "" {
		u, err := url.Parse(cluster.Server)
		if err != nil {
			return nil, &ErrKubeconfig{Field: "clusters[0].cluster.server", Why: "not an address"}
		}
		if cluster.ServerName == "" {
			cluster.ServerName = u.Hostname()
		}
		cluster.Server = "https://" + net.JoinHostPort(address, u.Port())
	}
	return yaml.Marshal(c)
}

// sameAuthority compares the CA of a kubeconfig with the CA of the one in file,
// which an earlier run wrote. A file that is absent or damaged says nothing.
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
		return nil //nolint:nilerr // a damaged file is written anew
	}
	now, err := readConf(kubeconfig)
	if err != nil {
		return err
	}
	ca, err := base64.StdEncoding.DecodeString(old.Clusters[0].Cluster.Authority)
	if err != nil || within(now.Clusters[0].Cluster.Authority, ca) {
		return err
	}
	return &ErrKubeconfig{Field: "clusters[0].cluster.certificate-authority-data", Why: "not the CA that this cluster has had, which " + file + " holds",
		advice: "find out whether this master is the one that it was; if the cluster was created anew without kubexm, move " + file + " away and run again"}
}

// Knows tells whether the operator's kubeconfig in the cluster's folder dir is of the
// cluster with ca, in PEM. A folder without one, or with a damaged one, tells nothing
// against it.
func Knows(dir string, ca []byte) (bool, error) {
	text, err := os.ReadFile(KubeconfigPath(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	c, err := readConf(text)
	return err != nil || within(c.Clusters[0].Cluster.Authority, ca), nil //nolint:nilerr // a damaged file is written anew
}

// within tells whether all certificates in data are among those in PEM.
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

// readConf reads a kubeconfig that holds one cluster, one user, one context, and
// for them the fields of conf alone.
func readConf(text []byte) (*conf, error) {
	var doc any
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, &ErrKubeconfig{Why: "not YAML"}
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

// confReader reads values of a document and keeps the first error.
type confReader struct{ err error }

func (r *confReader) refuse(field, format string, args ...any) {
	if r.err == nil {
		r.err = &ErrKubeconfig{Field: field, Why: fmt.Sprintf(format, args...)}
	}
}

// object gives a map that holds no other keys than those allowed.
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
			r.refuse(strings.TrimPrefix(field+"."+key, "."), "not a field that kubexm takes from a host")
		}
	}
	return m
}

// one gives the name of the only entry of a list, what it holds, and the path of that.
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

// plain is what names and host names of a kubeconfig are made of.
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

// pem accepts base64 of PEM blocks of some types, and gives it encoded anew.
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
