package registryd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/op"
	"github.com/mensylisir/kubexm/steps/pki"
	"github.com/mensylisir/kubexm/steps/runner"
)

// The registry's host keeps what another machine needs to work on it. Whoever is
// root there can do no more with these than with the registry itself.
const (
	caKey  = configDir + "/ca.key"
	caCert = configDir + "/ca.crt" // written last of these: where it is, all are
)

func passwordFile(user string) string { return path.Join(configDir, user+".password") }

// access are the keys and passwords as files of the registry's host.
func access() []op.Resource {
	secret := func(file string, body func(Access) ([]byte, error)) op.Resource {
		return op.File{Path: file, Attr: runner.Attr{Mode: 0o600}, Secret: true,
			Body: func(_ context.Context, h *steps.Host) ([]byte, error) { return body(AccessOf(h)) }}
	}
	var rs []op.Resource
	for _, user := range []string{PushUser, PullUser} {
		rs = append(rs, secret(passwordFile(user), func(a Access) ([]byte, error) {
			p, err := a.Password(user)
			return []byte(p + "\n"), err
		}))
	}
	return append(rs,
		secret(caKey, func(a Access) ([]byte, error) {
			ca, err := a.Authority(time.Now())
			if err != nil {
				return nil, err
			}
			_, key, err := ca.Encode()
			return key, err
		}),
		op.Text(caCert, func(_ context.Context, h *steps.Host) ([]byte, error) { return AccessOf(h).CA(time.Now()) }))
}

// Recall brings the registry's keys and passwords from its host to a machine that
// has none: what the nodes trust and log in with stays. It changes nothing on the
// host. Where the two have different ones it is refused, and where the host's
// registry was made by a kubexm that kept none there.
func Recall(ctx context.Context, h *steps.Host) error {
	if _, err := h.Stat(ctx, op.RecordDir(h)); err != nil { // kubexm has not begun here
		return absent(err)
	}
	a := AccessOf(h)
	there, err := h.ReadFile(ctx, caCert)
	if errors.Is(err, fs.ErrNotExist) {
		return a.lost(ctx, h)
	}
	if err != nil {
		return err
	}
	here, err := os.ReadFile(filepath.Join(a.Dir, "ca.crt"))
	switch {
	case err == nil && bytes.Equal(here, there):
		return nil
	case err == nil:
		return steps.Advise(errors.New("the registry here has another CA than this machine"), "move %s out of the way, and run again: what is in use comes from %s then", a.Dir, h.Name)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	key, err := h.ReadFile(ctx, caKey)
	if err != nil {
		return err
	}
	ca, err := pki.Decode(there, key)
	if err != nil {
		return fmt.Errorf("%s on %s: %w", caCert, h.Name, err)
	}
	for _, user := range []string{PushUser, PullUser} {
		p, err := h.ReadFile(ctx, passwordFile(user))
		if err != nil {
			return err
		}
		if err := a.store().Locked(func() error { return a.keep(user, strings.TrimSpace(string(p))) }); err != nil {
			return err
		}
	}
	return a.store().Take("ca", ca)
}

// lost refuses to go on without the keys of a registry that nodes use already.
func (a Access) lost(ctx context.Context, h *steps.Host) error {
	if err := a.Made(); !errors.Is(err, ErrNone) {
		return err
	}
	if _, err := h.Stat(ctx, path.Join(configDir, "tls.crt")); err != nil {
		return absent(err)
	}
	return steps.Advise(errors.New("the registry was made from another machine, and its keys are not here"), "bring %s from the machine that made the cluster", a.Dir)
}

// absent passes over what is not there.
func absent(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
