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

// The registry's host stores the keys that another workdir host needs. They give root on
// that host no more power than the registry itself does.
const (
	caKey  = configDir + "/ca.key"
	caCert = configDir + "/ca.crt" // written last: if it exists, all of them do
)

func passwordFile(user string) string { return path.Join(configDir, user+".password") }

// access returns the keys and passwords as files of the registry's host.
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

// Recall copies the registry's keys and passwords from its host to a workdir that has none,
// so that the CA and login of the nodes remain valid. It changes nothing on the host. It
// returns an error if the workdir has other keys, or if the host has none because an older
// kubexm installed the registry.
func Recall(ctx context.Context, h *steps.Host) error {
	if _, err := h.Stat(ctx, op.RecordDir(h)); err != nil { // kubexm has changed nothing on this host
		return absent(err)
	}
	a := AccessOf(h)
	installed, err := h.ReadFile(ctx, caCert)
	if errors.Is(err, fs.ErrNotExist) {
		return a.lost(ctx, h)
	}
	if err != nil {
		return err
	}
	own, err := os.ReadFile(filepath.Join(a.Dir, "ca.crt"))
	switch {
	case err == nil && bytes.Equal(own, installed):
		return nil
	case err == nil:
		return steps.Advise(errors.New("the registry on this host has a CA other than the one in the workdir"), "move %s away and run the command again: kubexm then copies the CA from %s", a.Dir, h.Name)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	key, err := h.ReadFile(ctx, caKey)
	if err != nil {
		return err
	}
	ca, err := pki.Decode(installed, key)
	if err != nil {
		return fmt.Errorf("%s on %s: %w", caCert, h.Name, err)
	}
	for _, user := range []string{PushUser, PullUser} {
		p, err := h.ReadFile(ctx, passwordFile(user))
		if err != nil {
			return err
		}
		if err := a.store().Locked(func() error { return a.writePassword(user, strings.TrimSpace(string(p))) }); err != nil {
			return err
		}
	}
	return a.store().Import("ca", ca)
}

// lost returns an error if the keys of a registry that nodes already use are missing.
func (a Access) lost(ctx context.Context, h *steps.Host) error {
	if err := a.CheckExists(); !errors.Is(err, ErrNone) {
		return err
	}
	if _, err := h.Stat(ctx, path.Join(configDir, "tls.crt")); err != nil {
		return absent(err)
	}
	return steps.Advise(errors.New("the registry was installed from another workdir host, and its keys are missing in this workdir"), "copy %s from the workdir host that created the cluster", a.Dir)
}

// absent returns err, unless it is fs.ErrNotExist.
func absent(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
