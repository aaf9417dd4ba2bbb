package registryd

import (
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

// The users of the registry: kubexm pushes, the nodes pull. Each is known to one of
// its two services alone.
const (
	PushUser = "kubexm-push"
	PullUser = "kubexm-pull"
)

// Access is what it takes to speak to the registry: it is made once, in the
// cluster's folder, and read back afterwards.
type Access struct {
	Dir string // workdir/certs/registry
}

// AccessOf gives the access of h's cluster.
func AccessOf(h *steps.Host) Access {
	return Access{Dir: filepath.Join(h.Workdir, "certs", "registry")}
}

func (a Access) store() pki.Store { return pki.Store{Dir: a.Dir} }

// Authority gives the registry's CA.
func (a Access) Authority(now time.Time) (pki.Pair, error) {
	return a.store().Authority("ca", "kubexm registry CA", now)
}

// CA gives the CA's certificate as PEM.
func (a Access) CA(now time.Time) ([]byte, error) {
	ca, err := a.Authority(now)
	if err != nil {
		return nil, err
	}
	cert, _, err := ca.Encode()
	return cert, err
}

// Password gives a user's password, made now if there is none.
func (a Access) Password(user string) (password string, err error) {
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
	if have := strings.TrimSpace(string(b)); have != "" { // an empty file is what a crash left
		return have, nil
	}
	raw := make([]byte, 24)
	if _, err := rand.Read(raw); err != nil {
		return "", err
	}
	p := base64.RawURLEncoding.EncodeToString(raw)
	return p, a.keep(user, p)
}

// keep writes a user's password whole or not at all: half of one would be taken for
// the password by the next run.
func (a Access) keep(user, password string) error {
	return durable.WriteFile(a.passwordPath(user), []byte(password+"\n"), 0o600)
}

func (a Access) passwordPath(user string) string { return filepath.Join(a.Dir, user+".password") }

// hashCost is the least there is. The registry hashes the password again for each
// request, hundreds of times while it is filled: with the usual cost that takes
// more of its processor than all else. A cost slows down who guesses a password,
// and nobody guesses 192 random bits.
const hashCost = bcrypt.MinCost

// login is a user of the registry.
type login struct {
	user, password string
	cost           int
}

// pushLogins is kubexm's own user, who alone may push.
func (a Access) pushLogins(*manifest.Cluster, *steps.Host) ([]login, error) {
	p, err := a.Password(PushUser)
	return []login{{PushUser, p, hashCost}}, err
}

// pullLogins are the user of the nodes, and one of the config: its password is no
// random one, and may cost what is usual.
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

// htpasswd gives the registry's password file. A hash has a salt of its own
// each time: have is kept as long as it answers for the passwords.
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

// client gives an HTTP client that checks the registry against its own CA.
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

// HostPort gives the name and port that images carry; without a port it is 443.
func HostPort(c *manifest.Cluster) (name, port string) {
	name, port, found := strings.Cut(c.Spec.Registry.PrivateRegistry, ":")
	if !found {
		port = "443"
	}
	return name, port
}
