package etcd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/op"
	"github.com/mensylisir/kubexm/steps/pki"
	"github.com/mensylisir/kubexm/steps/runner"
)

// The files of a member.
const (
	configDir  = "/etc/etcd"
	keysDir    = configDir + "/pki"
	caFile     = keysDir + "/ca.crt"
	caKeyFile  = keysDir + "/ca.key"
	serverCert = keysDir + "/server.crt"
	serverKey  = keysDir + "/server.key"
	peerCert   = keysDir + "/peer.crt"
	peerKey    = keysDir + "/peer.key"
	healthCert = keysDir + "/healthcheck-client.crt"
	healthKey  = keysDir + "/healthcheck-client.key"
)

// keys are etcd's certificates, in the cluster's folder on the workdir host.
type keys struct {
	store pki.Store
	now   time.Time
}

func keysOf(h *steps.Host) keys {
	return keys{store: pki.Store{Dir: filepath.Join(h.Workdir, "certs", "etcd")}, now: time.Now()}
}

// restartLock is a lock with which members restart one by one. It is separate from the lock
// of the keys, because its holder reads keys.
func restartLock(h *steps.Host) pki.Store {
	return pki.Store{Dir: filepath.Join(h.Workdir, "certs", "etcd", ".restart")}
}

func (k keys) authority() (pki.Pair, error) {
	return k.store.Authority("ca", "kubexm etcd CA", k.now)
}

// ca returns the CA's certificate and key as PEM.
func (k keys) ca() (cert, key []byte, err error) {
	ca, err := k.authority()
	if err != nil {
		return nil, nil, err
	}
	return ca.Encode()
}

// leaf returns a certificate and its key as PEM, which is stored under name. found returns
// the certificate that a host has.
func (k keys) leaf(name string, r pki.Request, found func() (cert, key []byte, err error)) (cert, key []byte, err error) {
	ca, err := k.authority()
	if err != nil {
		return nil, nil, err
	}
	p, err := k.store.LeafFrom(name, ca, r, k.now, found)
	if err != nil {
		return nil, nil, err
	}
	return p.Encode()
}

// A member is a client too: of its peers, and of itself for requests to the gRPC gateway.
func server(c *manifest.Cluster, h manifest.Host) (string, pki.Request) {
	names := append(addresses(c, h), "localhost", "127.0.0.1", "::1")
	return "server-" + h.Name, pki.Request{CommonName: h.Name, Names: names, Server: true, Client: true}
}

func peer(c *manifest.Cluster, h manifest.Host) (string, pki.Request) {
	return "peer-" + h.Name, pki.Request{CommonName: h.Name, Names: addresses(c, h), Server: true, Client: true}
}

// healthClient is the identity of kubexm's own requests on the hosts of members.
func healthClient() (string, pki.Request) {
	return "healthcheck-client", pki.Request{CommonName: "kube-etcd-healthcheck-client", Client: true}
}

// apiServer is the client identity of all API servers.
func apiServer() (string, pki.Request) {
	return "apiserver-etcd-client", pki.Request{CommonName: "kube-apiserver-etcd-client", Client: true}
}

// addresses returns all names and addresses of a member, as in /etc/hosts.
func addresses(c *manifest.Cluster, h manifest.Host) []string {
	out := []string{h.Name, h.Name + "." + c.Spec.Kubernetes.ClusterName}
	for _, a := range append(slices.Clone(h.InternalAddress), h.Address) {
		if !slices.Contains(out, a) {
			out = append(out, a)
		}
	}
	return out
}

// CheckKeys finds members with data whose CA is not the one in the workdir. Then the keys of
// this etcd are on another workdir host, and new keys would separate a member from the
// others.
func CheckKeys(c *manifest.Cluster) steps.Step {
	check := op.Check("etcd.check-keys", func(ctx context.Context, h *steps.Host) (steps.Findings, error) {
		data, err := hasData(ctx, c, h)
		if err != nil {
			return nil, err
		}
		if err := Data.On(h.Name).Put(h, data); err != nil || !data {
			return nil, err
		}
		have, err := h.ReadFile(ctx, caFile)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		own, err := os.ReadFile(filepath.Join(keysOf(h).store.Dir, "ca.crt"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) || bytes.Equal(have, own) {
			return nil, err
		}
		advice, err := caAdvice(ctx, h)
		return steps.Findings{{What: errAnotherCA.Error(), Advice: advice}}, err
	})
	return writing{check, Data}
}

// writing is a check that also stores an output.
type writing struct {
	steps.Step
	key steps.AnyKey
}

// Meta adds the output.
func (w writing) Meta() steps.Meta {
	m := w.Step.Meta()
	m.Writes = []steps.AnyKey{w.key}
	return m
}

var errAnotherCA = errors.New("the etcd member on this host has a CA other than the one in the workdir")

// caAdvice returns how to get the CA of the member on h into the workdir.
func caAdvice(ctx context.Context, h *steps.Host) (advice string, err error) {
	dir := keysOf(h).store.Dir
	_, err = h.Stat(ctx, caKeyFile)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Sprintf("copy %s from the workdir host that created the cluster", dir), nil
	}
	return fmt.Sprintf("move %s away and run the command again: kubexm then copies the CA from %s", dir, h.Name), err
}

// hasData reports whether the member on h has data, which is a write-ahead log. Folders
// without one remain of a member that could not start.
func hasData(ctx context.Context, c *manifest.Cluster, h *steps.Host) (bool, error) {
	all, err := h.List(ctx, walDir(c))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return slices.ContainsFunc(all, func(i runner.Info) bool { return isLog(i.Name) }), err
}

// memberCA returns the CA's certificate and key for a member's host. It refuses the members
// that CheckKeys reports.
func memberCA(ctx context.Context, h *steps.Host) (cert, key []byte, err error) {
	have, err := h.ReadFile(ctx, caFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, err
	}
	none := err != nil
	cert, key, cerr := keysOf(h).ca()
	if cerr != nil || err == nil && bytes.Equal(have, cert) {
		return cert, key, cerr
	}
	if data, err := hasData(ctx, h.Cluster, h); err != nil || !data {
		return cert, key, err
	}
	if none { // the member was removed and its data preserved: all members get new keys
		if ours, err := op.Recorded(ctx, h, dataDir(h.Cluster)); err != nil || ours {
			return cert, key, err
		}
	}
	advice, err := caAdvice(ctx, h)
	return nil, nil, errors.Join(steps.Advise(errAnotherCA, "%s", advice), err)
}

// Recall copies etcd's CA from one of the members' hosts to a workdir that has none, so that
// all new certificates are signed by the CA that the members trust. It changes nothing on
// hosts.
func Recall(ctx context.Context, members []*steps.Host) error {
	for _, h := range members {
		k := keysOf(h)
		_, err := os.Stat(filepath.Join(k.store.Dir, "ca.crt"))
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		ours, err := begun(ctx, h)
		if err != nil {
			return err
		}
		if !ours {
			continue
		}
		cert, err := h.ReadFile(ctx, caFile)
		var key []byte
		if err == nil {
			key, err = h.ReadFile(ctx, caKeyFile)
		}
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		ca, err := pki.Decode(cert, key)
		if err != nil {
			return fmt.Errorf("%s on %s: %w", caFile, h.Name, err)
		}
		if err := k.store.Import("ca", ca); err != nil {
			return err
		}
	}
	return nil
}

// Certificates are the files with certificates on the hosts of members that are services, and on
// masters that are their clients.
func Certificates() []string { return []string{caFile, serverCert, peerCert, healthCert, clientCert} }
