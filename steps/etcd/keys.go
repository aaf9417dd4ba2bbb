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

// keys are the certificates of the store, in the cluster's folder here.
type keys struct {
	store pki.Store
	now   time.Time
}

func keysOf(h *steps.Host) keys {
	return keys{store: pki.Store{Dir: filepath.Join(h.Workdir, "certs", "etcd")}, now: time.Now()}
}

// turns has the members of a store restart one by one: a lock of its own, for who
// holds it asks for keys.
func turns(h *steps.Host) pki.Store {
	return pki.Store{Dir: filepath.Join(h.Workdir, "certs", "etcd", ".restart")}
}

func (k keys) authority() (pki.Pair, error) {
	return k.store.Authority("ca", "kubexm etcd CA", k.now)
}

// ca gives the CA's certificate and key as PEM.
func (k keys) ca() (cert, key []byte, err error) {
	ca, err := k.authority()
	if err != nil {
		return nil, nil, err
	}
	return ca.Encode()
}

// leaf gives a certificate and its key as PEM, under a name in the store. found
// gives the one that a host has.
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

// A member is a client too: of its peers, and of itself for the requests that
// come as JSON.
func server(c *manifest.Cluster, h manifest.Host) (string, pki.Request) {
	names := append(addresses(c, h), "localhost", "127.0.0.1", "::1")
	return "server-" + h.Name, pki.Request{CommonName: h.Name, Names: names, Server: true, Client: true}
}

func peer(c *manifest.Cluster, h manifest.Host) (string, pki.Request) {
	return "peer-" + h.Name, pki.Request{CommonName: h.Name, Names: addresses(c, h), Server: true, Client: true}
}

// healthClient is who asks members how they are: kubexm itself, on their hosts.
func healthClient() (string, pki.Request) {
	return "healthcheck-client", pki.Request{CommonName: "kube-etcd-healthcheck-client", Client: true}
}

// apiServer is who all API servers are to the store.
func apiServer() (string, pki.Request) {
	return "apiserver-etcd-client", pki.Request{CommonName: "kube-apiserver-etcd-client", Client: true}
}

// addresses are all names that a member may be reached by, as /etc/hosts has them.
func addresses(c *manifest.Cluster, h manifest.Host) []string {
	out := []string{h.Name, h.Name + "." + c.Spec.Kubernetes.ClusterName}
	for _, a := range append(slices.Clone(h.InternalAddress), h.Address) {
		if !slices.Contains(out, a) {
			out = append(out, a)
		}
	}
	return out
}

// CheckKeys finds members with data that know another CA than this machine: the
// keys of the store are on another one, and giving a member new ones would cut it
// off from the others.
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
		here, err := os.ReadFile(filepath.Join(keysOf(h).store.Dir, "ca.crt"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) || bytes.Equal(have, here) {
			return nil, err
		}
		advice, err := bring(ctx, h)
		return steps.Findings{{What: errAnotherCA.Error(), Advice: advice}}, err
	})
	return writing{check}
}

// writing is a check that tells what it saw, too.
type writing struct{ steps.Step }

// Meta adds what it tells.
func (w writing) Meta() steps.Meta {
	m := w.Step.Meta()
	m.Writes = []steps.AnyKey{Data}
	return m
}

var errAnotherCA = errors.New("the member of etcd here knows another CA than this machine")

// bring says how this machine comes to the keys that the member on h knows.
func bring(ctx context.Context, h *steps.Host) (advice string, err error) {
	dir := keysOf(h).store.Dir
	_, err = h.Stat(ctx, caKeyFile)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Sprintf("bring %s from the machine that made the cluster", dir), nil
	}
	return fmt.Sprintf("move %s out of the way, and run again: what is in use comes from %s then", dir, h.Name), err
}

// hasData tells whether the member on h has any: a log. Its folders alone are what
// one leaves that could not begin.
func hasData(ctx context.Context, c *manifest.Cluster, h *steps.Host) (bool, error) {
	all, err := h.List(ctx, walDir(c))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return slices.ContainsFunc(all, func(i runner.Info) bool { return isLog(i.Name) }), err
}

// memberCA is the CA's certificate and key on a member's host. What CheckKeys finds
// is refused here, too.
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
	if none { // of a member that was removed, and whose data stayed: all members get new keys
		if ours, err := op.Recorded(ctx, h, dataDir(h.Cluster)); err != nil || ours {
			return cert, key, err
		}
	}
	advice, err := bring(ctx, h)
	return nil, nil, errors.Join(steps.Advise(errAnotherCA, "%s", advice), err)
}

// Recall brings the store's CA from one of its hosts to a machine that has none, so
// that nobody gets keys that the members do not know. It changes nothing on a host.
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
		if err := k.store.Take("ca", ca); err != nil {
			return err
		}
	}
	return nil
}
