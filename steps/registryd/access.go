package registryd

import (
	"bytes"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/crypto/bcrypt"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/durable"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/pki"
)

// The users of the registry: kubexm pushes, the nodes pull. Each of the registry's two
// services accepts only one of them.
const (
	PushUser = "kubexm-push"
	PullUser = "kubexm-pull"
)

// Access holds the registry's CA and passwords. They are generated once, in the cluster's
// folder on the workdir host, and read from it afterwards.
type Access struct {
	Dir string // workdir/certs/registry
}

// AccessOf returns the Access of h's cluster.
func AccessOf(h *steps.Host) Access {
	return Access{Dir: filepath.Join(h.Workdir, "certs", "registry")}
}

func (a Access) store() pki.Store { return pki.Store{Dir: a.Dir} }

// Authority returns the registry's CA, which it creates if there is none.
func (a Access) Authority(now time.Time) (pki.Pair, error) {
	return a.store().Authority("ca", "kubexm registry CA", now)
}

// CA returns the CA's certificate as PEM.
func (a Access) CA(now time.Time) ([]byte, error) {
	ca, err := a.Authority(now)
	if err != nil {
		return nil, err
	}
	return ca.CertificatePEM(), nil
}

// Password returns a user's password, which it generates if there is none.
func (a Access) Password(user string) (password string, err error) {
	// Passwords are written atomically, so that one that exists can be read without the lock.
	if b, err := os.ReadFile(a.passwordPath(user)); err == nil && len(bytes.TrimSpace(b)) > 0 {
		return string(bytes.TrimSpace(b)), nil
	}
	err = a.store().Locked(func() error {
		password, err = a.password(user)
		return err
	})
	return password, err
}

func (a Access) password(user string) (string, error) {
	b, err := os.ReadFile(a.passwordPath(user))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if have := strings.TrimSpace(string(b)); have != "" { // a crash may leave an empty file
		return have, nil
	}
	raw := make([]byte, 24)
	if _, err := rand.Read(raw); err != nil {
		return "", err
	}
	p := base64.RawURLEncoding.EncodeToString(raw)
	return p, a.writePassword(user, p)
}

// writePassword writes a user's password atomically: the next run would use a partial one.
func (a Access) writePassword(user, password string) error {
	return durable.WriteFile(a.passwordPath(user), []byte(password+"\n"), 0o600)
}

func (a Access) passwordPath(user string) string { return filepath.Join(a.Dir, user+".password") }

// hashCost is bcrypt's minimum. The registry hashes the password for every request,
// hundreds of times while it is filled: with the default cost that takes most of its
// processor time. A cost only slows down guessing, and 192 random bits cannot be guessed.
const hashCost = bcrypt.MinCost

// login is a user of the registry.
type login struct {
	user, password string
	cost           int
}

// pushLogins returns kubexm's own user, the only one that may push.
func (a Access) pushLogins(*manifest.Cluster, *steps.Host) ([]login, error) {
	p, err := a.Password(PushUser)
	return []login{{PushUser, p, hashCost}}, err
}

// pullLogins returns the user of the nodes, and the user of the config if there is one. The
// latter's password may be weak, so its hash has the default cost.
func (a Access) pullLogins(c *manifest.Cluster, h *steps.Host) ([]login, error) {
	p, err := a.Password(PullUser)
	if err != nil {
		return nil, err
	}
	out := []login{{PullUser, p, hashCost}}
	own := c.Spec.Registry.Auth(c.Spec.Registry.PrivateRegistry)
	if own.Username == "" {
		return out, nil
	}
	p, err = h.Secret(own.Password)
	return append(out, login{own.Username, p, bcrypt.DefaultCost}), err
}

// htpasswd returns the registry's password file. Every new hash has another salt, so the
// existing file have is returned if it matches the passwords.
func htpasswd(logins []login, have []byte) ([]byte, error) {
	var out strings.Builder
	same := true
	for _, l := range logins {
		hash := hashOf(have, l.user)
		if hash == "" || bcrypt.CompareHashAndPassword([]byte(hash), []byte(l.password)) != nil {
			same = false
			b, err := bcrypt.GenerateFromPassword([]byte(l.password), l.cost)
			if err != nil {
				return nil, err
			}
			hash = string(b)
		}
		fmt.Fprintf(&out, "%s:%s\n", l.user, hash)
	}
	if same && out.Len() == len(have) {
		return have, nil
	}
	return []byte(out.String()), nil
}

func hashOf(file []byte, user string) string {
	for line := range strings.Lines(string(file)) {
		if hash, ok := strings.CutPrefix(strings.TrimSpace(line), user+":"); ok {
			return hash
		}
	}
	return ""
}

// client returns an HTTP client that trusts only the registry's CA.
func (a Access) client(base *http.Transport, now time.Time) (*http.Client, error) {
	ca, err := a.Authority(now)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AddCert(ca.Certificate)
	base.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	return &http.Client{Transport: base}, nil
}

// HostPort returns the registry's name and port in image references; the default port is
// 443.
func HostPort(c *manifest.Cluster) (name, port string) {
	name, port, found := strings.Cut(c.Spec.Registry.PrivateRegistry, ":")
	if !found {
		port = "443"
	}
	return name, port
}
